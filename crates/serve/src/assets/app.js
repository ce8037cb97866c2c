"use strict";
(() => {
  // Instants in the reader's own time.
  for (const time of document.querySelectorAll("time[data-ns]")) {
    const at = new Date(Number(time.dataset.ns) / 1e6);
    time.dateTime = at.toISOString();
    time.append(" · " + at.toLocaleString());
  }

  // A window that is drawn in the plot of traces is what the form searches.
  for (const plot of document.querySelectorAll(".scatter")) {
    const svg = plot.querySelector("svg");
    const form = document.querySelector("form.search");
    const [left, top, right, bottom] = plot.dataset.box.split(" ").map(Number);
    const [low, high] = [Number(plot.dataset.low), Number(plot.dataset.high)];
    const [start, end] = [BigInt(plot.dataset.start), BigInt(plot.dataset.end)];
    const place = (event) => {
      const box = svg.getBoundingClientRect();
      const scale = svg.viewBox.baseVal.width / box.width;
      const within = (value, least, most) => Math.min(Math.max(value, least), most);
      return [within((event.clientX - box.left) * scale, left, right), within((event.clientY - box.top) * scale, top, bottom)];
    };
    let from = null;
    let drawn = null;
    svg.addEventListener("pointerdown", (event) => { from = place(event); });
    svg.addEventListener("pointermove", (event) => {
      if (!from) return;
      const to = place(event);
      if (!drawn && Math.hypot(to[0] - from[0], to[1] - from[1]) < 5) return;
      if (!drawn) {
        svg.setPointerCapture(event.pointerId);
        drawn = svg.appendChild(document.createElementNS(svg.namespaceURI, "rect"));
        drawn.setAttribute("class", "window");
      }
      drawn.setAttribute("x", Math.min(from[0], to[0]));
      drawn.setAttribute("y", Math.min(from[1], to[1]));
      drawn.setAttribute("width", Math.abs(to[0] - from[0]));
      drawn.setAttribute("height", Math.abs(to[1] - from[1]));
    });
    svg.addEventListener("pointerup", (event) => {
      const was = drawn && from;
      const to = place(event);
      from = null;
      if (!was) return;
      const instant = (x) => start + BigInt(Math.round(Number(end - start) * ((x - left) / (right - left))));
      const ms = (y) => Math.pow(10, high - ((y - top) / (bottom - top)) * (high - low)) / 1e6;
      form.elements.from.value = instant(Math.min(was[0], to[0]));
      form.elements.to.value = instant(Math.max(was[0], to[0])) + 1n;
      form.elements.least.value = ms(Math.max(was[1], to[1])).toPrecision(4);
      form.elements.most.value = ms(Math.min(was[1], to[1])).toPrecision(4);
      form.submit();
    });
  }

  // Charts as files.
  const styled = (svg) => {
    const copy = svg.cloneNode(true);
    const seen = [svg, ...svg.querySelectorAll("*")];
    [copy, ...copy.querySelectorAll("*")].forEach((node, at) => {
      const style = getComputedStyle(seen[at]);
      for (const name of ["fill", "stroke", "stroke-width", "opacity", "fill-opacity", "font", "text-anchor"]) node.style.setProperty(name, style.getPropertyValue(name));
    });
    copy.setAttribute("xmlns", svg.namespaceURI);
    copy.style.background = getComputedStyle(document.body).backgroundColor;
    return new XMLSerializer().serializeToString(copy);
  };
  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const asPng = (svg, name) => {
    const image = new Image();
    const { width, height } = svg.viewBox.baseVal;
    image.onload = () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [width * 2, height * 2];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(blob, name + ".png"));
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(styled(svg));
  };
  const asCsv = (chart, svg, name) => {
    const quoted = (text) => '"' + String(text).replaceAll('"', '""') + '"';
    const rows = [["series", "x", "y"]];
    for (const line of svg.querySelectorAll(".line[data-low]")) {
      const [left, right, seconds] = svg.dataset.x.split(" ").map(Number);
      const [top, bottom] = svg.dataset.y.split(" ").map(Number);
      for (const pair of line.getAttribute("d").split(/[M ]/).filter(Boolean)) {
        const [x, y] = pair.split(",").map(Number);
        const share = (bottom - y) / (bottom - top);
        const [low, high] = [Number(line.dataset.low), Number(line.dataset.high)];
        const value = line.dataset.scale === "log" ? low * Math.pow(high / low, share) : low + share * (high - low);
        rows.push([quoted(line.dataset.name), (((x - left) / (right - left)) * seconds).toFixed(3), value]);
      }
    }
    for (const title of svg.querySelectorAll("circle title")) rows.push(["", title.parentNode.getAttribute("cx"), quoted(title.textContent)]);
    save(new Blob([rows.map((row) => row.join(",")).join("\r\n")], { type: "text/csv" }), name + ".csv");
  };
  for (const chart of document.querySelectorAll(".chart, .scatter")) {
    const svg = chart.querySelector("svg");
    const name = (chart.querySelector("figcaption")?.textContent ?? "traces").trim();
    const bar = chart.appendChild(document.createElement("div"));
    bar.className = "export";
    const button = (text, act) => {
      const one = bar.appendChild(document.createElement("button"));
      [one.type, one.textContent] = ["button", text];
      one.setAttribute("aria-label", name + " as " + text);
      one.addEventListener("click", act);
    };
    button("SVG", () => save(new Blob([styled(svg)], { type: "image/svg+xml" }), name + ".svg"));
    button("PNG", () => asPng(svg, name));
    button("CSV", () => asCsv(chart, svg, name));
  }

  // Completion of names in a question.
  const area = document.querySelector("textarea[data-words]");
  if (area) {
    const words = area.dataset.words.split(" ");
    const list = document.getElementById("completions");
    const begun = () => /[A-Za-z_][A-Za-z_0-9]*$/.exec(area.value.slice(0, area.selectionStart))?.[0] ?? "";
    let chosen = 0;
    const found = () => [...list.children];
    const mark = () => found().forEach((item, at) => item.setAttribute("aria-selected", at === chosen));
    const take = (word) => {
      const at = area.selectionStart;
      area.setRangeText(word, at - begun().length, at, "end");
      list.hidden = true;
      area.focus();
    };
    area.addEventListener("input", () => {
      const start = begun().toLowerCase();
      const fitting = start.length < 2 ? [] : words.filter((word) => word.toLowerCase().startsWith(start) && word.length > start.length).slice(0, 12);
      list.replaceChildren(...fitting.map((word) => {
        const item = document.createElement("li");
        [item.textContent, item.role] = [word, "option"];
        item.addEventListener("pointerdown", (event) => { event.preventDefault(); take(word); });
        return item;
      }));
      chosen = 0;
      mark();
      list.hidden = fitting.length === 0;
    });
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { area.form.submit(); return; }
      if (list.hidden) return;
      const steps = { ArrowDown: 1, ArrowUp: -1 };
      if (event.key in steps) chosen = (chosen + steps[event.key] + found().length) % found().length;
      else if (event.key === "Tab" || event.key === "Enter") take(found()[chosen].textContent);
      else if (event.key === "Escape") list.hidden = true;
      else return;
      mark();
      event.preventDefault();
    });
    area.addEventListener("blur", () => { list.hidden = true; });
  }
})();
