"use strict";
(() => {
  const live = document.getElementById("live");
  if (!live) return;
  const lead = document.getElementById("live-lead");
  const seconds = [];
  let trial = null;
  const colours = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
  const space = "http://www.w3.org/2000/svg";
  const [left, right, top, bottom] = [64, 552, 8, 156];

  const three = (v) => (Math.abs(v) >= 99.95 || Number.isInteger(v) ? v.toFixed(0) : Math.abs(v) >= 9.995 ? v.toFixed(1) : v.toFixed(2));
  const duration = (ns) => {
    if (!ns) return ns === 0 ? "0" : "–";
    const names = ["ns", "µs", "ms", "s"];
    let at = 0;
    while (ns >= 1000 && at < 3) { ns /= 1000; at += 1; }
    return three(ns) + " " + names[at];
  };
  const add = (to, name, attributes, text) => {
    const node = to.appendChild(document.createElementNS(space, name));
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
  };

  // Lines from zero to a round number above the highest value.
  const draw = (name, lines, shown) => {
    const svg = document.getElementById("live-" + name);
    svg.replaceChildren();
    const first = seconds[0].at;
    const last = Math.max(seconds.at(-1).at, first + 10);
    const most = Math.max(...lines.flatMap((line) => line.values.map((value) => value ?? 0)), 1e-9);
    const unit = Math.pow(10, Math.floor(Math.log10(most)));
    const high = [1, 2, 5, 10].map((n) => n * unit).find((n) => n >= most * 1.02) ?? 10 * unit;
    const x = (at) => left + ((at - first) / (last - first)) * (right - left);
    const y = (value) => bottom - (value / high) * (bottom - top);
    for (const share of [0, 0.5, 1]) {
      add(svg, "path", { class: "grid", d: `M${left} ${y(share * high)}H${right}` });
      add(svg, "text", { class: "end", x: left - 6, y: y(share * high) + 4 }, shown(share * high));
    }
    add(svg, "text", { x: left, y: 174 }, "0 s");
    add(svg, "text", { class: "end", x: right, y: 174 }, (last - first).toFixed(0) + " s");
    lines.forEach((line, at) => {
      const parts = line.values.map((value, n) => (value === null ? null : x(seconds[n].at).toFixed(1) + "," + y(value).toFixed(1)));
      const d = parts.map((part, n) => (part === null ? "" : (n > 0 && parts[n - 1] !== null ? " " : "M") + part)).join("");
      if (d) add(svg, "path", { class: "line " + colours[at % 8], d });
    });
    document.getElementById("now-" + name).textContent = lines.length > 2 ? "" : lines.map((line) => shown(line.values.at(-1))).join(" · ");
    document.getElementById("legend-" + name).replaceChildren(...lines.map((line, at) => {
      const item = document.createElement("li");
      item.className = colours[at % 8];
      item.appendChild(document.createElement("span")).textContent = line.name;
      return item;
    }));
  };

  const of = (name, value) => ({ name, values: seconds.map(value) });
  const show = (told) => {
    if (told.trial !== trial || told.from === 0) seconds.length = 0;
    trial = told.trial;
    seconds.push(...told.seconds);
    const state = told.state === "running" ? `${told.variant}: trial ${told.done + 1} of ${told.trials}` : `The run is ${told.state}.`;
    lead.textContent = seconds.length ? `${state} · ${three(seconds.at(-1).rate)}/s · ${told.verdict}` : state;
    if (!seconds.length) return;
    draw("rate", [of("succeeded", (one) => one.rate), of("failed", (one) => one.errors)], three);
    draw("latency", [of("median", (one) => one.p50), of("95 %", (one) => one.p95)], duration);
    const services = [...new Set(seconds.flatMap((one) => Object.keys(one.cores)))].sort().slice(0, 8);
    if (services.length) draw("cores", services.map((name) => of(name === "narrows" ? "the load" : name || "the machine", (one) => one.cores[name] ?? 0)), three);
    draw("users", [of("users", (one) => one.users)], three);
  };

  const events = new EventSource(live.dataset.events);
  events.onmessage = (event) => {
    const told = JSON.parse(event.data);
    show(told);
    if (told.state !== "running") events.close();
  };
  events.onerror = () => { lead.textContent = "The server cannot be reached."; };
})();
