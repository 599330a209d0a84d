"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const DASHES = ["", "7 4", "2 4", "10 3 2 3", "1 6", "14 4"];
  const SHOWN = 8;

  // Text goes in as text only: nothing that data says is ever parsed as HTML.
  function make(name, attributes, ...children) {
    const node = name.startsWith("svg:")
      ? document.createElementNS(SVG, name.slice(4))
      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {}))
      if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
    for (const child of children) if (child !== null && child !== undefined) node.append(child);
    return node;
  }

  const minus = (text) => text.replace("-", "−");
  function short(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e6)) return minus(value.toExponential(1));
    return minus(String(Number(value.toPrecision(size >= 100 ? 4 : 3))));
  }

  // Mean and σ with the same digits: two of σ's own.
  function spread(mean, deviation) {
    if (!(deviation > 0)) return short(mean);
    if (Math.abs(mean) >= 1e6) return short(mean) + " ± " + short(deviation);
    const digits = Math.max(0, Math.min(6, 1 - Math.floor(Math.log10(deviation))));
    return minus(mean.toFixed(digits)) + " ± " + deviation.toFixed(digits);
  }

  function ticks(low, high, count) {
    if (low === high) return [low];
    const raw = (high - low) / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((k) => k >= raw * 0.999);
    const made = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) made.push(Number((k * step).toPrecision(12)));
    return made;
  }
  function powers(low, high) {
    for (const steps of [[1], [1, 3], [1, 2, 5], [1, 2, 3, 4, 5, 7]]) {
      const made = [];
      for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++)
        for (const k of steps) {
          const value = Number((k * 10 ** p).toPrecision(6));
          if (value >= low * 0.999 && value <= high * 1.001) made.push(value);
        }
      if (made.length >= 3) return made;
    }
    return [low, high].map((value) => Number(value.toPrecision(2)));
  }

  const order = (name, place) => Object.hasOwn(data.colors, name) ? data.colors[name] : place;
  const color = (name, place) => "c" + (order(name, place) % 8);
  const swatch = (kind) => make("span", { class: "swatch " + kind, "aria-hidden": "true" });

  const sample = (kind, dash) => make("svg:svg", { viewBox: "0 0 28 10", "aria-hidden": "true" },
    make("svg:path", { class: "curve " + kind, d: "M0,5H28", "stroke-dasharray": dash }));

  function button(text, pressed, act, kind, dash) {
    const look = !kind ? null : dash ? sample(kind, dash) : swatch(kind);
    const node = make("button", { type: "button", "aria-pressed": String(pressed) }, look, text);
    node.addEventListener("click", () => act(node));
    return node;
  }

  function choice(names, chosen, label, act) {
    const group = make("div", { class: "choice", role: "group", "aria-label": label });
    for (const name of names)
      group.append(button(name, name === chosen, (node) => {
        for (const other of group.children) other.setAttribute("aria-pressed", String(other === node));
        act(name);
      }));
    return group;
  }

  // Labels at the ends of lines, moved apart so that none covers another.
  function apart(places, gap, low, high) {
    const order = places.map((y, i) => [y, i]).sort((a, b) => a[0] - b[0]);
    for (let k = 1; k < order.length; k++) order[k][0] = Math.max(order[k][0], order[k - 1][0] + gap);
    let over = order.length ? order[order.length - 1][0] - high : 0;
    for (let k = order.length - 1; k >= 0 && over > 0; k--) {
      order[k][0] -= over;
      over = k > 0 ? order[k - 1][0] + gap - order[k][0] : 0;
    }
    const made = [];
    for (const [y, i] of order) made[i] = Math.max(low, y);
    return made;
  }

  // A chart of lines over x. lines: [{name, kind, dash, points: [{x, mean, low, high}]}]
  function plot(figure, options) {
    const holder = figure.querySelector(".chart");
    const live = make("p", { class: "unseen", "aria-live": "polite" });
    const tip = make("div", { class: "tip", hidden: true });
    let scene = null, at = -1;

    function draw() {
      const lines = options.lines();
      const width = Math.max(280, holder.clientWidth), height = Math.round(Math.min(380, Math.max(240, width * 0.42)));
      const named = width > 620 ? Math.min(270, 14 + 7 * Math.max(0, ...lines.map((line) => line.name.length))) : 12;
      const box = { left: 46, right: width - named, top: 10, bottom: height - 40 };
      const values = lines.flatMap((line) => line.points.filter(options.counts).flatMap((p) => [p.mean, p.low, p.high]));
      const real = values.filter((value) => value !== null && value !== undefined);
      const xs = [...new Set(options.xs())].sort((a, b) => a - b);
      let low = Math.min(...real), high = Math.max(...real);
      if (!real.length) { low = 0; high = 1; }
      const pad = (high - low || Math.abs(high) || 1) * 0.06;
      low -= pad; high += pad;
      const scale = options.logarithmic ? Math.log : (v) => v;
      const first = scale(xs[0]), last = scale(xs[xs.length - 1]);
      const x = (v) => last === first ? (box.left + box.right) / 2 : box.left + ((scale(v) - first) / (last - first)) * (box.right - box.left);
      const y = (v) => box.bottom - ((v - low) / (high - low)) * (box.bottom - box.top);
      const clip = "clip-" + figure.dataset.kind + figure.dataset.part;
      const svg = make("svg:svg", {
        viewBox: `0 0 ${width} ${height}`, height, role: "img", tabindex: "0",
        "aria-label": options.title + ". " + lines.map((line) => line.name).join(", ") + ". Arrow keys read the values.",
      });
      svg.append(make("svg:clipPath", { id: clip }, make("svg:rect", { x: box.left - 4, y: box.top - 6, width: box.right - box.left + 8, height: box.bottom - box.top + 12 })));
      for (const tick of ticks(low, high, 5))
        svg.append(
          make("svg:line", { class: "grid", x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }),
          make("svg:text", { x: box.left - 8, y: y(tick) + 4, "text-anchor": "end" }, short(tick)));
      svg.append(make("svg:line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
      const marks = options.logarithmic ? powers(xs[0], xs[xs.length - 1]) : ticks(xs[0], xs[xs.length - 1], Math.min(xs.length, width / 70)).filter((v) => !options.whole || Number.isInteger(v));
      for (const tick of marks)
        svg.append(make("svg:text", { x: x(tick), y: box.bottom + 18, "text-anchor": "middle" }, short(tick)));
      svg.append(make("svg:text", { x: (box.left + box.right) / 2, y: height - 4, "text-anchor": "middle" }, options.axis));
      const layer = make("svg:g", { "clip-path": `url(#${clip})` });
      svg.append(layer);
      for (const line of lines) {
        if (options.band) {
          const there = line.points.filter((p) => p.low !== null && p.high !== null);
          if (there.length > 1)
            layer.append(make("svg:path", { class: "band " + line.kind, d: "M" + there.map((p) => `${x(p.x).toFixed(1)},${y(p.high).toFixed(1)}`).join("L") + "L" + there.slice().reverse().map((p) => `${x(p.x).toFixed(1)},${y(p.low).toFixed(1)}`).join("L") + "Z" }));
        } else
          for (const p of line.points)
            if (p.low !== null && p.high !== null) layer.append(make("svg:line", { class: "whisker " + line.kind, x1: x(p.x), x2: x(p.x), y1: y(p.low), y2: y(p.high) }));
      }
      for (const line of lines) {
        let path = "", pen = "M";
        for (const p of line.points) {
          if (p.mean === null) { pen = "M"; continue; }
          path += `${pen}${x(p.x).toFixed(1)},${y(p.mean).toFixed(1)}`;
          pen = "L";
        }
        layer.append(make("svg:path", { class: "curve " + line.kind, d: path || "M0,0", "stroke-dasharray": line.dash || null, "data-name": line.name }));
        // A line of one point would be invisible.
        if (!options.band || line.points.length === 1) for (const p of line.points) if (p.mean !== null) layer.append(make("svg:circle", { class: "point " + line.kind, cx: x(p.x), cy: y(p.mean), r: 4 }));
      }
      if (width > 620) {
        const ends = lines.map((line) => line.points.filter((p) => p.mean !== null).pop()).map((p) => (p ? y(p.mean) + 4 : box.bottom));
        const placed = apart(ends, 15, box.top + 6, box.bottom);
        lines.forEach((line, i) => svg.append(make("svg:text", { class: "name " + line.kind, x: box.right + 8, y: placed[i] }, line.name.length > 38 ? line.name.slice(0, 37) + "…" : line.name)));
      }
      const rule = make("svg:line", { class: "rule", y1: box.top, y2: box.bottom, visibility: "hidden" });
      svg.append(rule);
      const dots = make("svg:g");
      svg.append(dots);
      holder.replaceChildren(svg, tip, live);
      tip.hidden = true;
      at = -1;
      scene = { svg, rule, dots, lines, xs, x, y, width, box };
      svg.addEventListener("pointermove", (event) => {
        const place = ((event.clientX - svg.getBoundingClientRect().left) / svg.getBoundingClientRect().width) * width;
        show(xs.reduce((best, v, i) => (Math.abs(x(v) - place) < Math.abs(x(xs[best]) - place) ? i : best), 0), false);
      });
      svg.addEventListener("pointerleave", hide);
      svg.addEventListener("blur", hide);
      svg.addEventListener("keydown", (event) => {
        const moves = { ArrowRight: at + 1, ArrowLeft: at < 0 ? xs.length - 1 : at - 1, Home: 0, End: xs.length - 1 };
        if (event.key === "Escape") hide();
        if (!(event.key in moves)) return;
        event.preventDefault();
        show(Math.min(xs.length - 1, Math.max(0, moves[event.key])), true);
      });
    }

    function show(place, aloud) {
      const { svg, rule, dots, lines, xs, x, y, width, box } = scene;
      at = place;
      const here = lines.map((line) => [line, line.points.find((p) => p.x === xs[place])]).filter(([, p]) => p && p.mean !== null);
      here.sort((a, b) => b[1].mean - a[1].mean);
      rule.setAttribute("x1", x(xs[place]));
      rule.setAttribute("x2", x(xs[place]));
      rule.setAttribute("visibility", "visible");
      dots.replaceChildren(...here.filter(([, p]) => y(p.mean) <= box.bottom + 4).map(([line, p]) => make("svg:circle", { class: "point " + line.kind, cx: x(p.x), cy: y(p.mean), r: 4.5 })));
      const title = options.at(xs[place]);
      const texts = here.map(([line, p]) => [line, options.said(p)]);
      tip.replaceChildren(make("b", {}, title), ...texts.map(([line, text]) => make("div", {}, make("span", {}, swatch(line.kind), line.name), make("span", {}, text))));
      tip.hidden = false;
      const ratio = svg.getBoundingClientRect().width / width, left = x(xs[place]) * ratio;
      tip.style.left = left + 14 + tip.offsetWidth > holder.clientWidth ? Math.max(0, left - 14 - tip.offsetWidth) + "px" : left + 14 + "px";
      if (aloud) live.textContent = title + ": " + texts.map(([line, text]) => line.name + " " + text).join(", ");
    }
    function hide() {
      tip.hidden = true;
      at = -1;
      if (scene) { scene.rule.setAttribute("visibility", "hidden"); scene.dots.replaceChildren(); }
    }

    let known = 0;
    new ResizeObserver(() => {
      if (Math.abs(holder.clientWidth - known) > 1) { known = holder.clientWidth; draw(); }
    }).observe(holder);
    known = holder.clientWidth;
    draw();
    return draw;
  }

  function toggles(lines, hidden, redraw, label) {
    const group = make("div", { class: "legend", role: "group", "aria-label": label || "Show or hide" });
    for (const line of lines)
      group.append(button(line.name, !hidden.has(line.name), (node) => {
        if (hidden.has(line.name)) hidden.delete(line.name);
        else hidden.add(line.name);
        node.setAttribute("aria-pressed", String(!hidden.has(line.name)));
        redraw();
      }, line.kind, line.dash));
    return group;
  }

  function curves(figure, part) {
    const names = Object.keys(part.curves).filter((name) => part.curves[name].length);
    const all = names.flatMap((name) => part.curves[name]);
    const labels = [...new Set(all.map((curve) => curve.label))];
    const several = part.settings.length > 1;
    const series = (label) => all.find((curve) => curve.label === label).series;
    // One dash a setting; else one for each time that the colours begin anew.
    const look = new Map(labels.map((label, i) => {
      const place = part.sweep && !several ? i : order(series(label), i);
      const dash = DASHES[(several ? part.setting[label] : Math.floor(place / 8)) % DASHES.length];
      return [label, { name: label, kind: "c" + (place % 8), dash }];
    }));
    // Few settings: a switch for each recipe and one for each setting. Else a switch for each line.
    const recipes = [...new Set(labels.map(series))];
    const hidden = new Set(several ? part.settings.slice(Math.max(1, Math.floor(SHOWN / recipes.length))) : labels.slice(SHOWN));
    const shown = (curve) => !(several ? hidden.has(curve.series) || hidden.has(part.settings[part.setting[curve.label]]) : hidden.has(curve.label));
    let chosen = names[0], late = false;
    const epochs = () => part.curves[chosen].flatMap((curve) => curve.epochs);
    const redraw = plot(figure, {
      get title() { return chosen + " over epochs"; },
      axis: "epoch", band: true, whole: true,
      xs: epochs,
      counts: (p) => !late || p.x > Math.max(...epochs()) / 3,
      lines: () => part.curves[chosen].filter(shown).map((curve) => ({
        ...look.get(curve.label),
        points: curve.epochs.map((epoch, i) => ({ x: epoch, mean: curve.mean[i], low: curve.low[i], high: curve.high[i] })),
      })),
      at: (epoch) => "epoch " + epoch,
      said: (p) => spread(p.mean, p.low === null ? 0 : (p.high - p.low) / 2),
    });
    const tools = figure.querySelector(".tools");
    if (names.length > 1) tools.append(choice(names, chosen, "What to draw", (name) => { chosen = name; redraw(); }));
    tools.append(make("div", { class: "choice" }, button("zoom in on later epochs", false, (node) => {
      late = !late;
      node.setAttribute("aria-pressed", String(late));
      redraw();
    })));
    if (several) {
      tools.append(
        toggles(recipes.map((name, i) => ({ name, kind: color(name, i), dash: "" })), hidden, redraw, "Show or hide starts"),
        toggles(part.settings.map((name, i) => ({ name, kind: "c0", dash: DASHES[i % DASHES.length] || "none" })), hidden, redraw, "Show or hide settings"));
    } else if (labels.length > 1) tools.append(toggles([...look.values()], hidden, redraw));
  }

  function sweep(figure, part) {
    const names = Object.keys(part.sweep.lines), hidden = new Set(names.slice(2 * SHOWN));
    const looks = names.map((name) => ({ name, kind: "c" + part.sweep.looks[name][0], dash: DASHES[part.sweep.looks[name][1] % DASHES.length] }));
    const redraw = plot(figure, {
      title: part.metric + " against " + part.sweep.axis,
      axis: part.sweep.axis + (part.sweep.logarithmic ? " (logarithmic)" : ""),
      logarithmic: part.sweep.logarithmic, band: false,
      xs: () => names.flatMap((name) => part.sweep.lines[name].map((p) => p.x)),
      counts: () => true,
      lines: () => looks.filter((line) => !hidden.has(line.name)).map((line) => ({ ...line, points: part.sweep.lines[line.name] })),
      at: (x) => short(x),
      said: (p) => p.mean.toFixed(part.digits) + (p.low === null ? "" : " [" + p.low.toFixed(part.digits) + ", " + p.high.toFixed(part.digits) + "]"),
    });
    if (names.length > 1) figure.querySelector(".tools").append(toggles(looks, hidden, redraw));
  }

  // How wide each matrix is beside the positions, on one logarithmic axis.
  function strip(shapes, width) {
    const known = shapes.filter((shape) => shape.ratio);
    if (known.length < 2) return null;
    const sides = [...new Set(known.map((shape) => shape.side))];
    const values = [...known.map((shape) => shape.ratio), 1];
    const low = Math.min(...values) / 1.6, high = Math.max(...values) * 1.6;
    const row = 28, left = sides.length > 1 ? 70 : 12, height = sides.length * row + 58;
    const x = (v) => left + ((Math.log(v) - Math.log(low)) / (Math.log(high) - Math.log(low))) * (width - left - 12);
    const svg = make("svg:svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "Size of the rows over that of the positions: " + known.map((s) => `${s.label}, ${s.side} ${short(s.ratio)}`).join("; ") });
    for (const tick of powers(low, high)) svg.append(
      make("svg:line", { class: "grid", x1: x(tick), x2: x(tick), y1: 18, y2: height - 36 }),
      make("svg:text", { x: x(tick), y: height - 22, "text-anchor": "middle" }, short(tick)));
    svg.append(
      make("svg:line", { class: "rule", x1: x(1), x2: x(1), y1: 18, y2: height - 36 }),
      make("svg:text", { x: x(1), y: 12, "text-anchor": "middle" }, "as large as the positions"),
      make("svg:text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, width > 560 ? "σ of the rows as the model adds them, over the positions’ (logarithmic)" : "σ of the rows over the positions’ (logarithmic)"));
    sides.forEach((side, i) => {
      const y = 18 + row * (i + 0.5);
      if (sides.length > 1) svg.append(make("svg:text", { x: 0, y: y + 4 }, side));
      // Equal ratios lie side by side, and their names behind the last of them.
      const groups = [];
      for (const shape of known.filter((one) => one.side === side).sort((a, b) => a.ratio - b.ratio)) {
        const near = groups.find((group) => x(shape.ratio) - x(group[0].ratio) < 8);
        if (near) near.push(shape);
        else groups.push([shape]);
      }
      for (const group of groups) {
        const start = x(group[0].ratio), end = start + 13 * (group.length - 1);
        group.forEach((shape, k) => svg.append(make("svg:circle", { class: "point " + color(shape.series, 0), cx: start + 13 * k, cy: y, r: 6 }, make("svg:title", {}, `${shape.label}, ${shape.side}: ${short(shape.ratio)}`))));
        const names = group.map((shape) => shape.label).join(", "), fits = end + 12 + 6.6 * names.length < width;
        if (width > 620) svg.append(make("svg:text", { x: fits ? end + 12 : start - 12, y: y + 4, "text-anchor": fits ? "start" : "end" }, names));
      }
    });
    return svg;
  }

  function shapes(figure, part) {
    const holder = figure.querySelector(".chart"), shown = part.shapes.filter((shape) => shape.counts.length);
    const several = new Set(shown.map((shape) => shape.side)).size > 1;
    const grid = make("div", { class: "multiples" });
    for (const shape of shown) {
      const width = 240, height = 84, most = Math.max(...shape.counts, 1);
      const low = shape.edges[0], high = shape.edges[shape.edges.length - 1];
      const x = (v) => high === low ? 0 : ((v - low) / (high - low)) * width;
      let path = `M0,${height}`;
      shape.counts.forEach((count, i) => {
        const y = (height - (count / most) * (height - 4)).toFixed(1);
        path += `L${x(shape.edges[i]).toFixed(1)},${y}L${x(shape.edges[i + 1]).toFixed(1)},${y}`;
      });
      const svg = make("svg:svg", { viewBox: `0 0 ${width} ${height + 16}`, role: "img", "aria-label": `Histogram of ${shape.label}, ${shape.side}: σ ${short(shape.std)}, from ${short(shape.min)} to ${short(shape.max)}` },
        make("svg:path", { class: "bars " + color(shape.series, 0), d: path + `L${width},${height}Z` }),
        make("svg:line", { class: "axis", x1: 0, x2: width, y1: height, y2: height }),
        make("svg:text", { x: 0, y: height + 14 }, short(low)),
        make("svg:text", { x: width, y: height + 14, "text-anchor": "end" }, short(high)));
      if (low < 0 && high > 0 && x(0) > 50 && x(0) < width - 50) svg.append(make("svg:text", { x: x(0), y: height + 14, "text-anchor": "middle" }, "0"));
      grid.append(make("div", {},
        make("h4", {}, swatch(color(shape.series, 0)), shape.label),
        make("p", {}, `${several ? shape.side + ": " : ""}σ ${short(shape.std)}, mean ${short(shape.mean)}`), svg));
    }
    let known = 0;
    const draw = () => {
      if (Math.abs(holder.clientWidth - known) <= 1) return;
      known = holder.clientWidth;
      holder.replaceChildren(...[strip(part.shapes, Math.max(280, known)), grid].filter((node) => node));
    };
    new ResizeObserver(draw).observe(holder);
    draw();
  }

  const kinds = { curves, sweep, shapes };
  for (const figure of document.querySelectorAll("figure[data-kind]"))
    kinds[figure.dataset.kind](figure, data.parts[Number(figure.dataset.part)]);

  const theme = document.getElementById("theme"), dark = window.matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const name = () => theme.setAttribute("aria-pressed", String(isDark()));
  theme.hidden = false;
  name();
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
  dark.addEventListener("change", name);

  // On paper nothing can be opened.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
  });
  window.addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
})();
