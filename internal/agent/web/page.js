"use strict";
// The script draws the page from the state that comes with it, keeps it up to date from the feed, counts down, finds and sorts. What is said
// is worked out by words.js; all text reaches the page as text, never as markup.
(() => {
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const svgNames = new Set(["svg", "g", "line", "text", "path", "title"]);

  // make builds an element; attributes whose value is null are left out.
  function make(name, attrs, ...inside) {
    const e = svgNames.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attrs || {})) {
      if (value !== null) e.setAttribute(key, value);
    }
    e.append(...inside);
    return e;
  }

  const drawn = {};

  // draw renews a part of the page if what it shows has changed, so that focus, selection and screen readers are left in peace.
  function draw(id, value, build) {
    const text = JSON.stringify(value === undefined ? null : value);
    if (drawn[id] === text) return;
    drawn[id] = text;
    $(id).replaceChildren(...build(value));
  }

  const say = (id, text) => draw(id, text, () => [text]);

  // --- The parts of the page.

  function drawFacts(facts) {
    return facts.map((f) => make("div", {}, make("dt", {}, f.label),
      make("dd", {class: f.bad ? "bad" : null}, f.code ? make("code", {}, f.value) : f.value)));
  }

  const items = (texts) => (texts || []).map((t) => make("li", {}, t));

  // --- The graph: the members on a circle, in the units of the drawing.

  const {besides, short} = words; // besides: the names of more point outwards

  const round = (x) => Math.round(x * 10) / 10;
  const degrees = (angle) => round(angle * 180 / Math.PI);
  const circle = (r) => `M${-r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${-r} 0Z`;

  // width is about how wide a text is at a font size.
  const width = (text, size) => [...text].reduce((w, c) => w + (c.codePointAt(0) < 128 ? 0.58 * size : size), 0);

  // shape tells the kinds of member apart without colour.
  function shape(kind, size) {
    if (kind === "missed") {
      const s = size * 1.2;
      return `M0 ${-s}L${s} 0L0 ${s}L${-s} 0Z`;
    }
    const s = round(size * 0.85);
    return kind === "downed" ? `M${-s} ${-s}H${s}V${s}H${-s}Z` : circle(size);
  }

  // label puts the name beside, above or below a node, gap away from its middle.
  function label(x, y, gap, lines) {
    if (Math.abs(x) < 1) return {side: "middle", x: 0, y: y < 0 ? -gap - 14 * lines : gap + 10, turn: 0};
    return x < 0 ? {side: "left", x: -gap, y: 4 - 7 * lines, turn: 0} : {side: "right", x: gap, y: 4 - 7 * lines, turn: 0};
  }

  // labelOutwards lets the name continue the radius, upright for whoever reads it.
  function labelOutwards(x, y, gap) {
    const turn = degrees(Math.atan2(y, x));
    if (x >= -0.5) return {side: "right", x: gap, y: 4, turn};
    return {side: "left", x: -gap, y: 4, turn: turn > 0 ? turn - 180 : turn + 180};
  }

  function drawLink(l, a, b, size, signed) {
    const length = Math.max(Math.hypot(b.x - a.x, b.y - a.y), 1);
    const ux = (b.x - a.x) / length, uy = (b.y - a.y) / length;
    const parts = [make("line", {class: l.kind, x1: round(a.x + ux * size), y1: round(a.y + uy * size), x2: round(b.x - ux * size), y2: round(b.y - uy * size)})];
    if (l.kind === "cut" && signed) { // not in the middle, where links cross
      const at = `translate(${round(a.x + ux * length * 0.42)} ${round(a.y + uy * length * 0.42)})`;
      parts.push(make("path", {class: "cross", d: "M-4 -4L4 4M4 -4L-4 4", transform: at}));
    }
    if (l.kind === "one-way") {
      const at = `translate(${round(b.x - ux * (size + 12))} ${round(b.y - uy * (size + 12))}) rotate(${degrees(Math.atan2(uy, ux))})`;
      parts.push(make("path", {class: "arrow", d: "M-8 -6L6 0L-8 6Z", transform: at}));
    }
    return parts;
  }

  function drawNode(n, at, size, halo, outwards) {
    const g = make("g", {class: `node ${n.kind}${n.odd ? " odd" : ""}${n.self ? " self" : ""}`, transform: `translate(${at.x} ${at.y})`}, make("title", {}, n.title));
    if (n.self) g.append(make("path", {class: "halo", d: circle(size + halo)}));
    g.append(make("path", {class: "fill", d: shape(n.kind, size)}), make("path", {class: "pattern", d: shape(n.kind, size)}));
    if (n.inside) g.append(make("text", {class: "inside", y: 5}, n.inside));
    if (n.holder) {
      const key = round(size * 0.8);
      g.append(make("path", {class: "key", d: `M${key} ${key - 7}l7 7l-7 7l-7 -7Z`}));
    }
    const gap = size + 8 + (n.self ? halo : 0);
    const l = outwards ? labelOutwards(at.x, at.y, gap) : label(at.x, at.y, gap, n.word ? 1 : 0);
    g.append(make("text", {class: `name ${l.side}`, x: l.x, y: l.y, transform: l.turn ? `rotate(${l.turn})` : null}, n.name));
    if (n.word) g.append(make("text", {class: `word ${l.side}`, x: l.x, y: l.y, dy: 14}, n.word));
    return g;
  }

  function drawRing(ring, members) {
    const many = members.length > besides;
    const nodes = members.map((m) => ({...m, name: short(m.name, many ? 14 : 22), word: many ? "" : m.word}));
    const radius = many ? 190 : 150, halo = many ? 3 : 5;
    const size = many ? Math.min(12, Math.floor(radius * Math.PI / nodes.length * 0.8)) : 20;
    const places = nodes.map((_, i) => {
      const angle = (i / nodes.length - 0.25) * 2 * Math.PI;
      return {x: round(radius * Math.cos(angle)), y: round(radius * Math.sin(angle))};
    });
    const top = Math.min(0, ...places.map((p) => p.y)), bottom = Math.max(0, ...places.map((p) => p.y));
    const widest = Math.max(0, ...nodes.map((n) => Math.max(width(n.name, 13), width(n.word, 11))));
    const left = radius + size + 20 + widest, margin = size + (many ? 20 + widest : 38);
    const box = [-left, top - margin, 2 * left, bottom - top + 2 * margin].map(round).join(" ");
    return make("svg", {class: many ? "large" : "", viewBox: box, role: "img", "aria-label": ring.label},
      ...(ring.links || []).flatMap((l) => drawLink(l, places[l.from], places[l.to], size, !many)),
      ...nodes.map((n, i) => drawNode(n, places[i], size, halo, many)));
  }

  function drawGroup(g, members) {
    const chips = members.filter((m) => m.kind === g.kind).map((m) =>
      make("li", {class: `chip ${m.kind}${m.self ? " self" : ""}`, title: m.title},
        make("span", {class: "name"}, short(m.name, 22)), ...(m.sign ? [make("b", {}, m.sign)] : [])));
    return make("div", {class: `group ${g.kind}`}, make("h4", {}, g.title), make("ul", {tabindex: 0, "aria-label": g.title}, ...chips));
  }

  const drawGraph = ({ring, groups, members}) => (ring ? [drawRing(ring, members)] : (groups || []).map((g) => drawGroup(g, members)));

  function drawPeople(label, p) {
    return make("div", {}, make("dt", {}, label),
      make("dd", {}, p.all ? make("details", {}, make("summary", {}, p.short), p.all) : p.short));
  }

  function drawVerdict(v) {
    if (!v) return [make("p", {class: "note"}, "None was ever written.")];
    return [
      make("p", {class: "ruling"}, make("b", {}, `Verdict ${v.token}`), ` by ${v.by}: ${v.reason} `, make("span", {}, v.fate)),
      make("dl", {class: "facts"}, drawPeople("Survivors", v.survivors), drawPeople("Down", v.down)),
    ];
  }

  function drawMember(m) {
    const head = make("th", {scope: "row"}, make("span", {class: "name"}, m.name));
    if (m.notes) head.append(make("span", {class: "notes"}, m.notes));
    return make("tr", {class: m.kind + (m.self ? " self" : "")}, head, make("td", {class: "sight"}, m.sight), make("td", {}, m.status),
      make("td", {}, m.by), make("td", {class: "code"}, m.addr), make("td", {}, m.roles), make("td", {class: "code"}, m.id));
  }

  function drawTiming([label, ...times]) {
    const cells = times.map((t) => make("td", {colspan: times.length > 1 ? null : 2}, t));
    return make("tr", {}, make("th", {scope: "row"}, label), ...cells);
  }

  function drawCountdown(c) {
    if (!c) return [];
    return [make("p", {}, make("time", {datetime: c.at}, c.text), ", ", make("b", {class: "left", role: "timer"})),
      make("progress", {"aria-hidden": "true", max: 1})];
  }

  let state = null; // the newest one,
  let last = null; // and what is shown of it
  let why = ""; // what the history says of the end of this member

  function show() {
    const v = last = words.view(state, why);
    root.dataset.tone = v.tone;
    document.title = v.title;
    say("member", v.member);
    say("system", v.system);
    say("sign", v.sign);
    say("state", v.state);
    say("headline", v.headline);
    say("detail", v.detail);
    draw("countdown", v.countdown, drawCountdown);
    draw("warnings", v.warnings, items);
    draw("facts", v.facts, drawFacts);
    draw("graph", {ring: v.ring, groups: v.groups, members: v.members}, drawGraph);
    say("key", v.key);
    draw("verdict", v.verdict, drawVerdict);
    rows = v.members;
    drawMembers();
    draw("config-warnings", v.config.warnings, items);
    draw("timings", v.config.timings, (all) => (all || []).map(drawTiming));
    say("yaml", v.config.yaml);
    say("zone", state.zone.name);
    count();
  }

  // --- The members: finding and sorting.

  let rows = [];
  let order = {by: -1, down: false};
  const columns = ["name", "sight", "status", "by", "addr", "roles", "id"];
  const compare = new Intl.Collator("en", {numeric: true}).compare;

  function drawMembers() {
    const wanted = $("find").value.trim().toLowerCase().split(/\s+/);
    let shown = rows.filter((m) => {
      const text = [...columns.map((c) => m[c]), m.notes].join(" ").toLowerCase();
      return wanted.every((w) => text.includes(w));
    });
    if (order.by >= 0) {
      const key = columns[order.by];
      shown = [...shown].sort((a, b) => compare(a[key], b[key]) * (order.down ? -1 : 1));
    }
    draw("members", shown, (all) => all.map(drawMember));
    say("found", shown.length === rows.length ? `all ${rows.length}` : `${shown.length} of ${rows.length}`);
  }

  $("find").addEventListener("input", drawMembers);

  const heads = [...document.querySelectorAll(".members thead th")];
  heads.forEach((head, i) => head.querySelector("button").addEventListener("click", () => {
    if (order.by !== i) order = {by: i, down: false};
    else if (!order.down) order = {by: i, down: true};
    else order = {by: -1, down: false};
    heads.forEach((h, j) => h.setAttribute("aria-sort", j !== order.by ? "none" : order.down ? "descending" : "ascending"));
    drawMembers();
  }));

  // --- The history. The newest stands first; the page holds as much as the agent, and a while more.

  const most = 400;
  const known = new Set();

  function tell(entry) {
    if (known.has(entry.id)) return;
    known.add(entry.id);
    if (entry.kind === "down") {
      why = entry.text;
      show();
    }
    const v = words.entry(entry, state.zone);
    $("journal").prepend(make("tr", {"data-id": entry.id, class: v.tone}, make("td", {class: "time"}, v.at), make("td", {}, v.word), make("td", {}, v.text)));
    while ($("journal").rows.length > most) {
      const last = $("journal").rows[most];
      known.delete(last.dataset.id);
      last.remove();
    }
    $("quiet").hidden = true;
  }

  $("kinds").addEventListener("change", () => $("journal").parentElement.classList.toggle("only", $("kinds").value === "key"));

  // --- The feed, and how old what is shown is.

  let source = null;
  let heard = performance.now(); // when the agent last said something
  let ahead = 0; // how far its clock is ahead of this one, in ms
  let feed = "connecting"; // connecting, live or lost

  function sign(now) {
    heard = performance.now();
    ahead = now - Date.now();
    if (feed === "live") return;
    feed = $("feed").dataset.is = "live";
    say("feed-text", "live");
    root.classList.remove("stale");
    $("stale").hidden = true;
  }

  function connect() {
    if (source) source.close();
    source = new EventSource(new URL("events", location.origin + location.pathname)); // without the password that the address may hold
    source.addEventListener("state", (e) => {
      const told = JSON.parse(e.data);
      sign(told.now);
      if (state.boot !== told.state.boot) { // another process: its history begins anew
        known.clear();
        why = "";
        $("journal").replaceChildren();
        $("quiet").hidden = false;
      }
      state = told.state;
      show();
    });
    source.addEventListener("occurrence", (e) => tell(JSON.parse(e.data)));
    source.addEventListener("alive", (e) => sign(JSON.parse(e.data).now));
    source.addEventListener("error", () => {
      lose();
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 5000); // refused: the browser does not try again
    });
  }

  function lose() {
    feed = $("feed").dataset.is = "lost";
    say("feed-text", "reconnecting");
    count();
  }

  // span is a duration for people: 7 s, 2 min 5 s, 3 h 20 min.
  function span(ms) {
    const s = Math.max(Math.round(ms / 1000), 0);
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
    return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
  }

  const silence = 35000; // twice the time between two signs of life, and some
  const patience = 5000; // for the first word

  // count renews what changes with time alone.
  function count() {
    const age = performance.now() - heard;
    if (feed !== "lost" && age > (feed === "live" ? silence : patience)) {
      lose();
      connect();
      return;
    }
    if (feed === "lost") {
      root.classList.add("stale");
      $("stale").hidden = false;
      const why = last && last.tone === "down" ? "This member is down and its agent has ended, or it cannot be reached." : "The agent cannot be reached.";
      // The age is renewed every second, but not read out.
      draw("stale", why, () => [`Old: ${why} What follows was true `, make("span", {id: "age", "aria-live": "off"}), " ago."]);
      $("age").textContent = span(age);
    }
    const left = document.querySelector("#countdown .left");
    if (!left || !last || !last.countdown) return;
    const now = Date.now() + ahead, c = last.countdown, rest = c.until - now;
    left.textContent = feed === "lost" ? "unknown whether it still stands" : rest < 500 ? "due" : `in ${span(rest)}`;
    const bar = document.querySelector("#countdown progress");
    bar.hidden = feed === "lost" || !c.from;
    bar.value = Math.min(Math.max((now - c.from) / Math.max(c.until - c.from, 1), 0), 1);
  }

  setInterval(count, 250);

  // --- Colours.

  const theme = $("theme");
  const themes = ["system", "light", "dark"];
  theme.addEventListener("click", () => {
    const next = themes[(themes.indexOf(root.dataset.theme || "system") + 1) % themes.length];
    if (next === "system") delete root.dataset.theme;
    else root.dataset.theme = next;
    theme.querySelector("span").textContent = next;
    theme.setAttribute("aria-label", `Colours: ${next === "system" ? "as the system has them" : next}`);
  });

  const first = JSON.parse($("first").textContent);
  $("first").remove(); // it is raw: names in it may reorder what stands around them
  state = first.state;
  show();
  first.occurrences.forEach(tell);
  connect();
})();
