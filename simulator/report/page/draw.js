// Drawing: the time axis with its lanes, the cluster as a graph, and who sees whom. All text reaches the page as text, never as markup.

// make builds an element; attributes whose value is null are left out. A link inside a drawing is called svg:a here.
function make(name, attrs, ...inside) {
  const svg = ["svg", "g", "line", "circle", "rect", "text", "path", "title", "use", "svg:a"].includes(name);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name.replace("svg:", "")) : document.createElement(name);
  for (const [key, value] of Object.entries(attrs || {})) {
    if (value !== null && value !== undefined) e.setAttribute(key, value);
  }
  e.append(...inside);
  return e;
}

function cut(text, length) {
  const letters = [...text];
  return letters.length > length ? letters.slice(0, length - 1).join("") + "…" : text;
}

// --- The time axis. The heights, in pixels, are those of the style sheet. Places are shares of the width, so that one drawing fits a
// telephone, a wide screen and paper.

const axisHeight = 26, rowHeight = 24, laneHeight = 40;

const percent = (share) => `${+(Math.min(Math.max(share, 0), 1) * 100).toFixed(4)}%`;

// fit is a class that says from which width of the axis on a text fits into its share of it.
function fit(text, share) {
  const need = (7.2 * [...text].length + 10) / Math.max(share, 1e-9);
  return need <= 240 ? "fit-s" : need <= 560 ? "fit-m" : need <= 900 ? "fit-l" : need <= 4000 ? "fit-x" : "";
}

// The kinds of event that have a mark on a lane, the most telling first.
const shapes = {VIOLATION: "broken", committed: "verdict", decision: "decision", verdict: "learnt", tells: "told", asks: "asked", answer: "asked", lost: "asked"};
const rank = (kind) => Object.keys(shapes).indexOf(kind);

class Chart {
  constructor(m, id) {
    this.m = m;
    this.id = id;
    this.y = axisHeight;
    this.names = make("ul", {class: "names", "aria-hidden": "true"}, make("li", {class: "axis"}, "time"));
    this.axis = make("g", {class: "axis", "aria-hidden": "true"});
    this.now = make("line", {class: "now", x1: 0, x2: 0, y1: 16, y2: "100%", "aria-hidden": "true"});
    this.svg = make("svg", {class: "chart", width: "100%", role: "group", "aria-label": "Time axis with one line for each member"}, this.axis);
    const marks = [...this.rows(), ...this.lanes()];
    this.svg.append(...marks, this.now);
    this.svg.setAttribute("height", this.y);
    this.wide = make("div", {class: "wide-axis"}, this.svg);
    this.element = make("div", {class: "lanes"}, this.names, make("div", {class: "track"}, this.wide));
  }

  share(t) { return this.m.until > 0 ? Math.min(Math.max(t / this.m.until, 0), 1) : 0; }

  // rows are the world: what is cut, how the store is, who holds the lease, and when too many or too few were at work.
  rows() {
    const m = this.m;
    const spans = (all, title) => all.map((s) => ({...s, text: clock(s.to - s.from), title: `${title} for ${clock(s.to - s.from)}`}));
    return [
      this.row("network", "network", true, networkBands(m), (e) => e.lane < 0 && e.kind === "VIOLATION"),
      this.row("lease store", "store", false, storeBands(m)),
      this.row("lease", "lease", true, leaseBands(m), (e) => e.kind === "committed"),
      this.row("two sides", "double", false, spans(m.double, "two sides at work after a decision")),
      this.row("nobody", "nobody", false, spans(m.nobody, "nobody at work")),
    ].flat();
  }

  row(name, kind, always, bands, marked) {
    if (bands.length === 0 && !always) return [];
    const line = make("svg", {y: this.y, width: "100%", height: rowHeight, overflow: "visible"});
    const said = bands.map((b, i) => {
      const title = `${b.title}, ${clock(b.from)} to ${clock(b.to)}`;
      const beside = kind === "double" || kind === "nobody" ? this.beside(bands, i) : "";
      // A holder begins with a verdict, whose mark stands there.
      line.append(this.bar(b, kind, b.text, title, {y: 3, height: 18, base: 16, indent: kind === "lease" ? 12 : 5, beside}));
      return title;
    });
    this.svg.append(make("g", {class: "row", role: "img", "aria-label": this.summary(name, said)}, line));
    this.names.append(make("li", {class: `row ${kind}`}, name));
    this.y += rowHeight;
    return marked ? this.marks(this.y - rowHeight + 12, marked) : [];
  }

  lanes() {
    return this.m.lanes.flatMap((lane, l) => {
      const line = make("svg", {y: this.y, width: "100%", height: laneHeight, overflow: "visible"});
      for (const s of lane.lives) {
        let title = `${lane.label}: ${s.state}, ${clock(s.from)} to ${clock(s.to)}`;
        if (s.late > s.early) title += ` (they came to it between ${clock(s.early)} and ${clock(s.late)})`;
        line.append(this.bar(s, lifeClass(s.state), s.state, title, {y: 17, height: 20, base: 31, indent: 5}));
      }
      const said = lane.lives.map((s) => `${s.state} from ${clock(s.from)}`);
      this.svg.append(make("g", {class: "lane", role: "img", "aria-label": this.summary(lane.label, said)}, line));
      this.names.append(make("li", {class: "lane", title: lane.label}, lane.label));
      this.y += laneHeight;
      return this.marks(this.y - laneHeight + 8, (e) => e.lane === l && rank(e.kind) >= 0);
    });
  }

  summary(name, said) { return `${name}: ${said.length ? limited(said, 30).join("; ") : "nothing"}`; }

  bar({from, to}, kind, text, title, {y, height, base, indent, beside}) {
    const x = percent(this.share(from)), width = percent(this.share(to) - this.share(from));
    const g = make("g", {class: `bar ${kind}`}, make("title", {}, title), make("rect", {class: "fill", x, width, y, height}),
      make("rect", {class: "pattern", x, width, y, height}), make("line", {class: "edge", x1: x, x2: x, y1: y - 1, y2: y + height + 1}));
    const fits = fit(text, this.share(to) - this.share(from));
    if (beside) {
      const at = beside === "before" ? x : percent(this.share(to));
      g.append(make("svg", {x: at, height: rowHeight, overflow: "visible"}, make("text", {class: beside, x: beside === "before" ? -6 : 7, y: base}, text)));
    } else if (fits) {
      g.append(make("svg", {x, width, height: laneHeight}, make("text", {class: fits, x: indent, y: base}, text)));
    }
    return g;
  }

  // beside says on which side of a bar, which may be too short to be seen, its text covers no other one.
  beside(bands, i) {
    const room = 0.1, from = this.share(bands[i].from), to = this.share(bands[i].to);
    if (fit(bands[i].text, to - from) === "fit-s") return "";
    if (to > 1 - room) return i === 0 || from - this.share(bands[i - 1].to) > room ? "before" : "";
    return (i + 1 < bands.length ? this.share(bands[i + 1].from) : 1) - to > room ? "after" : "";
  }

  // marks puts events that would cover each other into one mark, which looks like the most telling of them.
  marks(y, want) {
    const all = [];
    this.m.events.forEach((e, i) => {
      if (!want(e)) return;
      const at = this.share(e.t), line = `${clock(e.t)} ${e.line}`, before = all[all.length - 1];
      if (before && at - before.at < 0.018) {
        before.count++;
        before.lines.push(line);
        if (rank(e.kind) < rank(before.kind)) before.kind = e.kind;
      } else all.push({at, kind: e.kind, count: 1, event: i, lines: [line]});
    });
    return all.map((k) => {
      const title = limited(k.lines, 20).join("\n"), shape = shapes[k.kind];
      const sign = make("svg", {x: percent(k.at), y, overflow: "visible"}, make("use", {href: `#m-${shape}`, x: -8, y: -8, width: 16, height: 16}));
      if (k.count > 1) sign.append(make("text", {x: 9, y: -3}, String(k.count)));
      return make("svg:a", {class: `mark ${shape}`, href: `#${this.id}-e${k.event}`, "data-event": k.event, "aria-label": title}, make("title", {}, title), sign);
    });
  }

  // scale puts a round time to about every hundred pixels of the axis.
  scale() {
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 12e5, 18e5, 36e5, 72e5, 144e5, 432e5];
    const until = this.m.until, pixels = this.wide.clientWidth / until;
    const step = steps.find((d) => d * pixels >= 90) || until;
    this.axis.replaceChildren();
    for (let t = 0; t <= until; t += step) {
      const x = percent(t / until), end = t === 0 ? "first" : (until - t) * pixels < 40 ? "last" : null;
      this.axis.append(make("line", {x1: x, x2: x, y1: 18, y2: "100%"}), make("text", {x, y: 13, class: end}, clock(t)));
    }
  }
}

const lifeClass = (state) => (state ? `life-${state.split(" ")[0]}` : "absent");

// --- The cluster as a graph.

function drawGraph(m, s) {
  const n = m.lanes.length;
  const radius = 150, size = n > 16 ? 14 : 22;
  const place = m.lanes.map((_, i) => {
    const angle = (i / n - 0.25) * 2 * Math.PI;
    return {x: radius * Math.cos(angle), y: radius * Math.sin(angle)};
  });
  const svg = make("svg", {viewBox: "-345 -215 690 450", role: "img", "aria-label": tellGraph(m, s)});
  for (let i = 0; i < n; i++) {
    for (let j = i + 1; j < n; j++) drawLink(svg, s, i, j, place, n, size);
  }
  m.lanes.forEach((lane, i) => {
    const {x, y} = place[i];
    const word = s.life[i] || "not there";
    const leads = s.leads.some((leader, by) => leader === i && s.works[by] && s.side[by] === s.side[i]) && s.works[i];
    const g = make("g", {class: `node ${lifeClass(s.life[i])} side-${s.side[i] % 5}${s.works[i] ? "" : " off"}`});
    g.append(make("title", {}, `${lane.label}: ${word}`));
    g.append(make("circle", {class: "fill", cx: x, cy: y, r: size}), make("circle", {class: "pattern", cx: x, cy: y, r: size}));
    g.append(make("text", {class: "letter", x, y: y + 5}, (leads ? "★" : "") + (s.split && s.life[i] ? letter(s.side[i]) : "")));
    if (s.holder === i) g.append(make("use", {class: "key", href: "#m-verdict", x: x + size - 12, y: y + size - 12, width: 18, height: 18}));
    const right = x > 1, middle = Math.abs(x) <= 1;
    const lx = middle ? 0 : x + (right ? 1 : -1) * (size + 8);
    const ly = middle ? (y < 0 ? y - size - 22 : y + size + 18) : y;
    const anchor = middle ? "middle" : right ? "start" : "end";
    g.append(
      label(cut(lane.label, 22), lx, ly, anchor, "name"),
      label(n > 24 ? "" : word, lx, ly + 14, anchor, "word"),
      label(n > 24 || !s.hurt[i] ? "" : "lease store at fault", lx, ly + 27, anchor, "word"),
    );
    svg.append(g);
  });
  return svg;
}

function label(inside, x, y, anchor, name) {
  const t = make("text", {x, y, class: name}, inside);
  t.style.textAnchor = anchor;
  return t;
}

// A link that works is a thin line. One that is cut is drawn only where there are few: else its absence says it.
function drawLink(svg, s, i, j, place, n, size) {
  const there = s.isCut(i, j), back = s.isCut(j, i);
  const [a, b] = there && !back ? [place[j], place[i]] : [place[i], place[j]];
  const length = Math.hypot(b.x - a.x, b.y - a.y);
  const at = (from, to, d) => ({x: from.x + ((to.x - from.x) * d) / length, y: from.y + ((to.y - from.y) * d) / length});
  if (!s.life[i] || !s.life[j]) return;
  if (!there || !back || n <= 8) {
    const kind = there && back ? "cut" : there || back ? "one-way" : "open";
    svg.append(make("line", {class: kind, x1: a.x, y1: a.y, x2: b.x, y2: b.y}));
    if (kind === "cut") {
      const p = at(a, b, length * 0.42); // not in the middle, where links cross
      svg.append(make("text", {class: "cross", x: p.x, y: p.y + 4}, "✕"));
    }
    if (kind === "one-way") { // the arrow points the way that still works
      const p = at(b, a, size + 12), turn = (Math.atan2(b.y - a.y, b.x - a.x) * 180) / Math.PI;
      svg.append(make("path", {class: "cross", d: "M-8 -6L6 0L-8 6Z", transform: `translate(${p.x} ${p.y}) rotate(${turn})`}));
    }
  }
  for (const [by, of] of [[i, j], [j, i]]) { // a square at the end of the member that sees the other one as failed
    if (!s.works[by] || !["failed", "some"].includes(s.sees[by][of])) continue;
    const p = at(place[by], place[of], size + 9);
    svg.append(make("rect", {class: "sees", x: p.x - 4, y: p.y - 4, width: 8, height: 8}));
  }
}

const letter = (i) => String.fromCharCode(65 + (i % 26));

function tellGraph(m, s) {
  const sides = new Map();
  m.lanes.forEach((lane, i) => {
    sides.set(s.side[i], [...(sides.get(s.side[i]) || []), `${lane.label} ${s.life[i] || "not there"}`]);
  });
  const parts = [...sides].map(([i, who]) => (s.split ? `side ${letter(i)}: ` : "") + who.join(", "));
  return `${parts.join("; ")}. The lease is held by ${s.holder < 0 ? "nobody" : m.lanes[s.holder].label}.`;
}

// --- Who sees whom.

const signs = {alive: "✓", failed: "✕", some: "◐", missed: "!", unknown: "–", unwatched: "?"};
const words = {
  alive: "alive", failed: "failed", some: "failed, some of them", missed: "alive, but its own probes fail", unknown: "unknown",
  unwatched: "not recorded",
};

function drawMatrix(m, s) {
  const head = make("tr", {}, make("th", {scope: "col"}, "sees →"));
  for (const lane of m.lanes) head.append(make("th", {scope: "col", title: lane.label}, cut(lane.label, 10)));
  const body = make("tbody");
  m.lanes.forEach((by, i) => {
    const row = make("tr", {}, make("th", {scope: "row", title: by.label}, cut(by.label, 18)));
    m.lanes.forEach((of, j) => {
      const self = i === j && by.size === 1, is = s.sees[i][j];
      if (self || !s.works[i]) {
        row.append(make("td", {class: self ? "self" : "off", title: self ? by.label : `${by.label} is not at work`}, ""));
        return;
      }
      const story = `${by.label} sees ${of.label}: ${words[is]}`;
      row.append(make("td", {class: is, title: story, "aria-label": story}, signs[is]));
    });
    body.append(row);
  });
  return make("table", {}, make("thead", {}, head), body);
}

const matrixKey = "✓ alive  ✕ failed  ◐ failed for some  ! own probes fail  – unknown  ? not recorded; an empty row: not at work";
const graphKey = "A, B …: sides that cannot reach each other · ★ leads its side · ◆ holds the lease · ■ sees the other end as failed · dashed: cut";

// --- How a value is spread over the runs of a group.

const tenths = (v) => (v === 0 ? "0" : v < 0.1 ? v.toFixed(3) : v.toFixed(1));

function drawSpread(name, s) {
  const one = (text) => make("figure", {class: "spread"}, make("figcaption", {}, make("b", {}, name), ` ${text}`));
  if (!s.runs) return one("in no run");
  if (s.min === s.max) return one(`${tenths(s.min)} s in ${s.runs === 1 ? "the run" : "every run"}`);
  const most = Math.max(...s.histogram), width = 100 / s.histogram.length, step = (s.max - s.min) / s.histogram.length;
  const svg = make("svg", {width: "100%", height: 60, role: "img", "aria-label": `${name}: ${s.runs} runs between ${tenths(s.min)} s and ${tenths(s.max)} s`});
  s.histogram.forEach((n, i) => {
    const high = n ? Math.max((58 * n) / most, 2) : 0;
    svg.append(make("rect", {x: `${i * width + 0.4}%`, width: `${width - 0.8}%`, y: 60 - high, height: high},
      make("title", {}, `${number(n)} of ${number(s.runs)} runs: ${tenths(s.min + i * step)} s to ${tenths(s.min + (i + 1) * step)} s`)));
  });
  const line = `half of the runs ${tenths(s.p50)} s, 9 in 10 ${tenths(s.p90)} s, 99 in 100 ${tenths(s.p99)} s`;
  return make("figure", {class: "spread"}, make("figcaption", {}, make("b", {}, name), ` ${line}`), svg,
    make("p", {class: "ends"}, make("span", {}, `${tenths(s.min)} s`), make("span", {}, `${tenths(s.max)} s`)));
}
