"use strict";
// The page is complete without this script. The script keeps it up to date from the feed, draws the same as the server does, counts down,
// finds and sorts. What is shown is worked out by the server; all text reaches the page as text, never as markup.
(() => {
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const svgNames = new Set(["svg", "g", "line", "text", "path", "title"]);

  root.classList.add("js");

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

  // --- The parts, as page.gohtml has them.

  function drawFacts(facts) {
    return facts.map((f) => make("div", {}, make("dt", {}, f.label),
      make("dd", {class: f.bad ? "bad" : null}, f.code ? make("code", {}, f.value) : f.value)));
  }

  const items = (texts) => (texts || []).map((t) => make("li", {}, t));

  function drawLink(l) {
    const parts = [make("line", {class: l.kind, x1: l.x1, y1: l.y1, x2: l.x2, y2: l.y2})];
    if (l.sign) parts.push(make("path", {class: "cross", d: "M-4 -4L4 4M4 -4L-4 4", transform: `translate(${l.mx} ${l.my})`}));
    if (l.kind === "one-way") {
      parts.push(make("path", {class: "arrow", d: "M-8 -6L6 0L-8 6Z", transform: `translate(${l.mx} ${l.my}) rotate(${l.turn})`}));
    }
    return parts;
  }

  function drawNode(n) {
    const g = make("g", {class: `node ${n.class}`, transform: `translate(${n.x} ${n.y})`}, make("title", {}, n.title));
    if (n.halo) g.append(make("path", {class: "halo", d: n.halo}));
    g.append(make("path", {class: "fill", d: n.shape}), make("path", {class: "pattern", d: n.shape}));
    if (n.inside) g.append(make("text", {class: "inside", y: 5}, n.inside));
    if (n.key) g.append(make("path", {class: "key", d: n.key}));
    g.append(make("text", {class: `name ${n.side}`, x: n.lx, y: n.ly, transform: n.turn ? `rotate(${n.turn})` : null}, n.name));
    if (n.word) g.append(make("text", {class: `word ${n.side}`, x: n.lx, y: n.ly, dy: 14}, n.word));
    return g;
  }

  function drawRing(ring) {
    return make("svg", {class: ring.class, viewBox: ring.box, role: "img", "aria-label": ring.label},
      ...(ring.links || []).flatMap(drawLink), ...ring.nodes.map(drawNode));
  }

  function drawGroup(g) {
    return make("div", {class: `group ${g.kind}`}, make("h4", {}, g.title), make("ul", {tabindex: 0, "aria-label": g.title}, ...g.chips.map((c) =>
      make("li", {class: `chip ${c.class}`, title: c.title}, make("span", {class: "name"}, c.name), ...(c.sign ? [make("b", {}, c.sign)] : [])))));
  }

  const drawGraph = ({ring, groups}) => (ring ? [drawRing(ring)] : (groups || []).map(drawGroup));

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

  function drawTiming(t) {
    const cells = t.Lone ? [make("td", {}, t.Larger), make("td", {}, t.Lone)] : [make("td", {colspan: 2}, t.Larger)];
    return make("tr", {}, make("th", {scope: "row"}, t.Label), ...cells);
  }

  function drawCountdown(c) {
    if (!c) return [];
    return [make("p", {}, make("time", {datetime: c.at}, c.text), ", ", make("b", {class: "left", role: "timer"})),
      make("progress", {class: "needs-js", "aria-hidden": "true", max: 1})];
  }

  const signs = {calm: "✔", wait: "!", bad: "✘", down: "■"};

  function show(v) {
    root.dataset.tone = v.tone;
    document.title = v.title;
    say("member", v.member);
    say("system", v.system);
    say("sign", signs[v.tone]);
    say("state", v.state);
    say("headline", v.headline);
    say("detail", v.detail);
    draw("countdown", v.countdown, drawCountdown);
    draw("warnings", v.warnings, items);
    draw("facts", v.facts, drawFacts);
    draw("graph", {ring: v.ring, groups: v.groups}, drawGraph);
    say("key", v.key);
    draw("verdict", v.verdict, drawVerdict);
    rows = v.members;
    drawMembers();
    draw("config-warnings", v.config.warnings, items);
    draw("timings", v.config.timings, (all) => (all || []).map(drawTiming));
    say("yaml", v.config.yaml);
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
  let boot = null;
  const known = new Set([...$("journal").rows].map((r) => r.dataset.id));

  function tell(entry) {
    if (known.has(entry.id)) return;
    known.add(entry.id);
    const v = entry.view;
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
  let last = null;

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
      const {now, state} = JSON.parse(e.data);
      sign(now);
      if (boot !== null && boot !== state.boot) { // another process: its history begins anew
        known.clear();
        $("journal").replaceChildren();
        $("quiet").hidden = false;
      }
      boot = state.boot;
      last = state.view;
      show(last);
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

  // span is a duration for people, as the server writes it.
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

  say("feed-text", "connecting");
  connect();
})();
