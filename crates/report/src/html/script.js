"use strict";
(() => {
  // Which two trials stand side by side.
  const lists = [...document.querySelectorAll(".chooser select")];
  const panels = [...document.querySelectorAll(".panel")];
  const choose = () => {
    const sides = lists.map((list) => list.value);
    for (const panel of panels) {
      const side = sides.indexOf(panel.dataset.trial);
      panel.hidden = side < 0;
      if (side >= 0) panel.style.order = panel.dataset.row * 2 + side;
    }
  };
  for (const list of lists) list.addEventListener("change", choose);

  // Values on hover, read back from the geometry of the lines.
  const three = (v) => (Math.abs(v) >= 99.95 || v === 0 ? v.toFixed(0) : Math.abs(v) >= 9.995 ? v.toFixed(1) : v.toFixed(2));
  const scaled = (v, base, names) => {
    let at = 0;
    while (v >= base && at + 1 < names.length) { v /= base; at += 1; }
    return three(v) + " " + names[at];
  };
  const written = {
    duration: (v) => scaled(v, 1000, ["ns", "µs", "ms", "s"]),
    bytes: (v) => scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]),
    count: (v) => Math.round(v).toLocaleString("en"),
    number: three,
    cores: (v) => v.toFixed(2) + " cores",
    percent: (v) => v.toFixed(0) + " %",
  };
  const valueOf = (line, share) => {
    const low = +line.dataset.low, high = +line.dataset.high;
    return line.dataset.scale === "log" ? low * Math.pow(high / low, share) : low + share * (high - low);
  };
  const pointsOf = (line) => {
    line.points ??= line.getAttribute("d").split(/[M ]/).filter(Boolean).map((pair) => pair.split(",").map(Number));
    return line.points;
  };
  const nearest = (points, x) => {
    let low = 0, high = points.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle][0] < x) low = middle + 1; else high = middle;
    }
    return low > 0 && x - points[low - 1][0] < points[low][0] - x ? points[low - 1] : points[low];
  };
  const leave = (chart) => chart.querySelectorAll(".tip, .cursor").forEach((node) => node.remove());
  const show = (chart, svg, event) => {
    leave(chart);
    const box = svg.getBoundingClientRect();
    const [left, right, seconds] = svg.dataset.x.split(" ").map(Number);
    const [top, bottom] = svg.dataset.y.split(" ").map(Number);
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    if (x < left || x > right) return;
    const tip = document.createElement("div");
    tip.className = "tip";
    const rows = [(((x - left) / (right - left)) * seconds).toFixed(1) + " s"];
    let highest = null;
    for (const line of svg.querySelectorAll(".line")) {
      const point = nearest(pointsOf(line), x);
      if (!point || Math.abs(point[0] - x) > 24) continue;
      const value = valueOf(line, (bottom - point[1]) / (bottom - top));
      const row = (name) => name + "  " + written[line.dataset.unit](value);
      if (!("highest" in line.dataset)) rows.push(row(line.dataset.name));
      else if (!highest || value > highest.value) highest = { value, text: row("highest, " + line.dataset.name) };
    }
    if (highest) rows.push(highest.text);
    for (const row of rows) tip.appendChild(document.createElement("div")).textContent = row;
    const cursor = document.createElementNS(svg.namespaceURI, "path");
    cursor.setAttribute("class", "cursor");
    cursor.setAttribute("d", `M${x} ${top}V${bottom}`);
    svg.appendChild(cursor);
    chart.appendChild(tip);
    const at = event.clientX - box.left;
    tip.style.left = (at > box.width / 2 ? at - tip.offsetWidth - 12 : at + 12) + "px";
    tip.style.top = box.top - chart.getBoundingClientRect().top + 34 + "px";
  };
  for (const chart of document.querySelectorAll(".chart")) {
    const svg = chart.querySelector("svg");
    svg.addEventListener("pointermove", (event) => show(chart, svg, event));
    svg.addEventListener("pointerleave", () => leave(chart));
  }
})();
