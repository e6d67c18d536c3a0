"use strict";
// The page is complete without this script, as far as paper is. The script adds what needs a moment to be chosen: stepping through a
// run, the cluster and the views at that moment, and choosing among runs. All text reaches the page as text, never as markup.
(() => {
  const root = document.documentElement;
  const main = document.getElementById("main");
  const SVG = "http://www.w3.org/2000/svg";
  const stories = [...document.querySelectorAll("template.story")];
  let player = null;

  root.classList.add("js");

  // make builds an element; attributes whose value is null are left out.
  function make(name, attrs, ...inside) {
    const svg = ["svg", "g", "line", "circle", "rect", "text", "path", "title", "use"].includes(name);
    const e = svg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attrs || {})) {
      if (value !== null) e.setAttribute(key, value);
    }
    e.append(...inside);
    return e;
  }

  function clock(ms) {
    if (ms === 0) return "0s";
    if (ms < 1) return `${Math.round(ms * 1000)}µs`;
    if (ms < 1000) return `${+ms.toFixed(2)}ms`;
    const s = +(ms / 1000).toFixed(3);
    return s < 60 ? `${s}s` : `${Math.floor(s / 60)}m${+(s % 60).toFixed(3)}s`;
  }

  function cut(text, length) {
    const letters = [...text];
    return letters.length > length ? letters.slice(0, length - 1).join("") + "…" : text;
  }

  // --- The state of a run at one moment: the changes until then, one after the other.

  function stateAt(data, t) {
    const n = data.lanes.length;
    const s = {
      life: Array(n).fill(null), sees: Array.from({length: n}, () => Array(n).fill("alive")),
      side: Array(n).fill(0), cut: new Set(), leads: Array(n).fill(-1), holder: -1, hurt: Array(n).fill(false),
    };
    for (const c of data.changes) {
      if (c.t > t) break;
      if (c.life) s.life[c.life.lane] = c.life;
      if (c.see) s.sees[c.see.by][c.see.of] = c.see.is;
      if (c.net) {
        s.side = c.net.side;
        s.cut = new Set(c.net.cut.map(([a, b]) => a * n + b));
      }
      if (c.lead) s.leads[c.lead[0]] = c.lead[1];
      if (c.held !== undefined) s.holder = c.held;
      if (c.hurt) s.hurt[c.hurt[0]] = c.hurt[1] === 1;
    }
    const order = [...new Set(s.side)];
    s.letter = s.side.map((x) => order.indexOf(x));
    s.split = order.length > 1;
    s.works = s.life.map((l) => l !== null && l.works);
    s.isCut = (a, b) => s.cut.has(a * n + b);
    return s;
  }

  // --- The cluster as a graph.

  function drawGraph(data, s) {
    const n = data.lanes.length;
    const radius = 150, size = n > 16 ? 14 : 22;
    const place = data.lanes.map((_, i) => {
      const angle = (i / n - 0.25) * 2 * Math.PI;
      return {x: radius * Math.cos(angle), y: radius * Math.sin(angle)};
    });
    const svg = make("svg", {viewBox: "-345 -215 690 450", role: "img", "aria-label": tellGraph(data, s)});
    for (let i = 0; i < n; i++) {
      for (let j = i + 1; j < n; j++) drawLink(svg, s, i, j, place, n, size);
    }
    data.lanes.forEach((lane, i) => {
      const {x, y} = place[i];
      const life = s.life[i] || {class: "absent", word: "not there"};
      const leads = s.leads.some((leader, by) => leader === i && s.works[by] && s.side[by] === s.side[i]) && s.works[i];
      const g = make("g", {class: `node ${life.class} side-${s.letter[i] % 5}${s.works[i] ? "" : " off"}`});
      g.append(make("title", {}, `${lane.label}: ${life.word}`));
      g.append(make("circle", {class: "fill", cx: x, cy: y, r: size}), make("circle", {class: "pattern", cx: x, cy: y, r: size}));
      g.append(make("text", {class: "letter", x, y: y + 5}, (leads ? "★" : "") + (s.split && s.life[i] ? letter(s.letter[i]) : "")));
      if (s.holder === i) g.append(make("use", {class: "key", href: "#m-verdict", x: x + size - 12, y: y + size - 12, width: 18, height: 18}));
      const right = x > 1, middle = Math.abs(x) <= 1;
      const lx = middle ? 0 : x + (right ? 1 : -1) * (size + 8);
      const ly = middle ? (y < 0 ? y - size - 22 : y + size + 18) : y;
      const anchor = middle ? "middle" : right ? "start" : "end";
      g.append(
        text(cut(lane.label, 22), lx, ly, anchor, "name"),
        text(n > 24 ? "" : life.word, lx, ly + 14, anchor, "word"),
        text(n > 24 || !s.hurt[i] ? "" : "lease store hurt", lx, ly + 27, anchor, "word"),
      );
      svg.append(g);
    });
    return svg;
  }

  function text(inside, x, y, anchor, name) {
    const t = make("text", {x, y, class: name}, inside);
    t.style.textAnchor = anchor;
    return t;
  }

  // A link that works is a thin line. One that is cut is drawn only where there are few: else its absence says it.
  function drawLink(svg, s, i, j, place, n, size) {
    const few = n <= 8;
    const there = s.isCut(i, j), back = s.isCut(j, i);
    const [a, b] = there && !back ? [place[j], place[i]] : [place[i], place[j]];
    const length = Math.hypot(b.x - a.x, b.y - a.y);
    const at = (from, to, d) => ({x: from.x + ((to.x - from.x) * d) / length, y: from.y + ((to.y - from.y) * d) / length});
    if (!s.life[i] || !s.life[j]) return;
    if (!there || !back || few) {
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
    for (const [by, of] of [[i, j], [j, i]]) { // a square at the end of whoever sees the other one as failed
      if (!s.works[by] || !["failed", "some"].includes(s.sees[by][of])) continue;
      const p = at(place[by], place[of], size + 9);
      svg.append(make("rect", {class: "sees", x: p.x - 4, y: p.y - 4, width: 8, height: 8}));
    }
  }

  const letter = (i) => String.fromCharCode(65 + (i % 26));

  function tellGraph(data, s) {
    const sides = new Map();
    data.lanes.forEach((lane, i) => {
      const word = s.life[i] ? s.life[i].word : "not there";
      sides.set(s.letter[i], [...(sides.get(s.letter[i]) || []), `${lane.label} ${word}`]);
    });
    const parts = [...sides].map(([i, who]) => (s.split ? `side ${letter(i)}: ` : "") + who.join(", "));
    return `${parts.join("; ")}. The lease is held by ${s.holder < 0 ? "nobody" : data.lanes[s.holder].label}.`;
  }

  // --- Who sees whom.

  const signs = {alive: "✓", failed: "✕", some: "◐", missed: "!", unknown: "–", unwatched: "?"};
  const words = {
    alive: "alive", failed: "failed", some: "failed, some of them", missed: "alive, but its own probes fail", unknown: "unknown",
    unwatched: "not recorded",
  };

  function drawMatrix(data, s) {
    const head = make("tr", {}, make("th", {scope: "col"}, "sees →"));
    for (const lane of data.lanes) head.append(make("th", {scope: "col", title: lane.label}, cut(lane.label, 10)));
    const body = make("tbody");
    data.lanes.forEach((by, i) => {
      const row = make("tr", {}, make("th", {scope: "row", title: by.label}, cut(by.label, 18)));
      data.lanes.forEach((of, j) => {
        const self = i === j && by.size === 1;
        const is = s.sees[i][j];
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

  // --- One run.

  class Player {
    constructor(article) {
      this.article = article;
      this.data = JSON.parse(article.querySelector("script.data").textContent);
      this.rows = [...article.querySelectorAll(".events tbody tr")];
      this.slider = article.querySelector(".slider");
      this.graph = article.querySelector(".graph");
      this.matrix = article.querySelector(".matrix");
      this.moment = article.querySelector(".moment");
      this.playButton = article.querySelector("[data-step=play]");
      this.wide = article.querySelector(".wide-axis");
      this.zoom = 1;
      this.now = 0;
      this.slider.max = Math.max(this.rows.length - 1, 0);
      article.querySelector(".matrix").after(make("p", {class: "note"}, matrixKey));
      this.slider.addEventListener("input", () => this.go(+this.slider.value));
      article.addEventListener("click", (e) => this.click(e));
      const kinds = this.rows.map((r) => r.dataset.kind);
      const telling = ["decision", "VIOLATION", "partition", "cut"].map((k) => kinds.indexOf(k)).find((i) => i >= 0);
      this.go(telling || 0); // before that little has happened
    }

    click(e) {
      const step = e.target.closest("[data-step]"), zoom = e.target.closest("[data-zoom]"), event = e.target.closest("[data-event]");
      if (step) this.press(step.dataset.step);
      if (zoom) this.widen(+zoom.dataset.zoom);
      if (event) {
        e.preventDefault();
        this.go(+event.dataset.event);
      }
      if (e.target.closest(".copy")) copy(this.article.querySelector(".replay"), e.target);
    }

    press(step) {
      if (step === "play") this.play(!this.timer);
      else if (step === "first") this.go(0);
      else if (step === "last") this.go(this.rows.length - 1);
      else this.go(this.now + +step);
    }

    // go shows the moment of one event.
    go(i) {
      if (this.rows.length === 0) return;
      this.rows[this.now].removeAttribute("aria-current");
      this.now = Math.min(Math.max(i, 0), this.rows.length - 1);
      const row = this.rows[this.now];
      const t = this.data.events[this.now];
      row.setAttribute("aria-current", "true");
      // Only the list scrolls: the page stays where the reader is.
      const list = row.closest(".scroll");
      const top = row.offsetTop - list.querySelector("thead").offsetHeight; // no head on a narrow screen
      if (top < list.scrollTop || row.offsetTop + row.offsetHeight > list.scrollTop + list.clientHeight) {
        list.scrollTop = top - list.clientHeight / 3;
      }
      this.slider.value = this.now;
      const [, who, what, say] = [...row.cells].map((c) => c.textContent);
      const line = `${[who, what].filter(Boolean).join(" ")}${say ? ": " + say : ""}`;
      this.slider.setAttribute("aria-valuetext", `${clock(t)}, ${line}`);
      this.moment.replaceChildren(make("b", {}, clock(t)), ` event ${this.now + 1} of ${this.rows.length}: ${line}`);
      const share = `${Math.min(t / this.data.until, 1) * 100}%`;
      const mark = this.article.querySelector(".now");
      mark.setAttribute("x1", share);
      mark.setAttribute("x2", share);
      const s = stateAt(this.data, t);
      this.graph.replaceChildren(drawGraph(this.data, s), make("figcaption", {}, graphKey));
      this.matrix.replaceChildren(drawMatrix(this.data, s));
      this.reveal();
    }

    // reveal scrolls a widened time axis to the moment.
    reveal() {
      const track = this.wide.parentElement;
      if (this.zoom === 1) return;
      const x = (this.data.events[this.now] / this.data.until) * this.wide.clientWidth;
      if (x < track.scrollLeft + 20 || x > track.scrollLeft + track.clientWidth - 40) track.scrollLeft = x - track.clientWidth / 2;
    }

    widen(factor) {
      this.zoom = Math.min(Math.max(this.zoom * factor, 1), 256);
      this.wide.style.width = `${this.zoom * 100}%`;
      this.scale();
      const track = this.wide.parentElement;
      track.scrollLeft = (this.data.events[this.now] / this.data.until) * this.wide.clientWidth - track.clientWidth / 2;
    }

    // scale puts a round time to about every hundred pixels of the axis.
    scale() {
      const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 12e5, 18e5, 36e5, 72e5, 144e5, 432e5];
      const pixels = this.wide.clientWidth / this.data.until;
      const step = steps.find((d) => d * pixels >= 90) || this.data.until;
      const axis = this.article.querySelector(".axis:not(li)");
      axis.replaceChildren();
      for (let t = 0; t <= this.data.until; t += step) {
        const x = `${(t / this.data.until) * 100}%`;
        const end = t === 0 ? "first" : (this.data.until - t) * pixels < 40 ? "last" : null;
        axis.append(make("line", {x1: x, x2: x, y1: 18, y2: "100%"}), make("text", {x, y: 13, class: end}, clock(t)));
      }
    }

    play(on) {
      clearInterval(this.timer);
      this.timer = null;
      if (on && this.now === this.rows.length - 1) this.go(0);
      if (on) {
        this.timer = setInterval(() => {
          this.go(this.now + 1);
          if (this.now === this.rows.length - 1) this.play(false);
        }, 400);
      }
      // Nobody wants to hear every step of a film.
      this.moment.setAttribute("aria-live", on ? "off" : "polite");
      this.playButton.setAttribute("aria-pressed", on);
      this.playButton.setAttribute("aria-label", on ? "Stop" : "Play");
      this.playButton.textContent = on ? "stop" : "play";
    }

    key(e) {
      const far = e.shiftKey ? 10 : 1;
      const moves = {ArrowLeft: () => this.go(this.now - far), ArrowRight: () => this.go(this.now + far),
        Home: () => this.go(0), End: () => this.go(this.rows.length - 1), " ": () => this.play(!this.timer)};
      if (!moves[e.key]) return;
      e.preventDefault();
      moves[e.key]();
    }
  }

  function copy(from, button) {
    const done = () => {
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 2000);
    };
    const select = () => { // where the browser keeps the clipboard to itself, the command is ready to be copied by hand
      getSelection().selectAllChildren(from);
      if (document.execCommand("copy")) done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(from.textContent).then(done, select);
    else select();
  }

  // --- Which run, which moment.

  function show(number) {
    const old = main.querySelector("article.run");
    if (+old.dataset.run !== number) {
      const story = stories.find((t) => +t.content.querySelector("article").dataset.run === number);
      if (!story) return;
      if (player) player.play(false);
      // The story that leaves goes back into its template, so that nothing is lost and no id is there twice.
      const home = make("template", {class: "story"});
      story.replaceWith(home);
      stories[stories.indexOf(story)] = home;
      main.replaceChildren(story.content);
      home.content.append(old);
    }
    begin();
  }

  function begin() {
    const article = main.querySelector("article.run");
    if (!player || player.article !== article) {
      if (article.querySelector("script.data")) player = article.player = article.player || new Player(article);
      else player = null;
    }
    for (const row of document.querySelectorAll(".runs tbody tr")) {
      if (row.dataset.run === article.dataset.run) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }

  function follow() {
    const [, run, event] = /^#r(\d+)(?:-e(\d+))?$/.exec(location.hash) || [];
    if (run === undefined) return;
    show(+run);
    if (player && event !== undefined) player.go(+event);
  }

  // --- The list of runs.

  const find = document.getElementById("find"), which = document.getElementById("which");

  function filter() {
    const wanted = find.value.trim().toLowerCase().split(/\s+/);
    const rows = [...document.querySelectorAll(".runs tbody tr")];
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !(wanted.every((w) => text.includes(w)) && (!which.value || row.classList.contains(which.value)));
      if (!row.hidden) shown++;
    }
    document.getElementById("found").textContent = `${shown} of ${rows.length} runs`;
  }

  if (find) {
    find.addEventListener("input", filter);
    which.addEventListener("change", filter);
    find.form.addEventListener("submit", (e) => e.preventDefault());
    document.querySelector(".runs table").addEventListener("click", (e) => {
      const button = e.target.closest("[data-show]");
      if (!button) return;
      show(+button.dataset.show);
      main.focus();
    });
    filter();
  }

  // --- Keys, colours, tips.

  document.addEventListener("keydown", (e) => {
    if (!player || e.ctrlKey || e.altKey || e.metaKey) return;
    const t = e.target;
    if (t.matches("input:not([type=range]), select, textarea")) return;
    if (e.key === " " && t.closest("button, a")) return;
    player.key(e);
  });

  const theme = document.getElementById("theme");
  const themes = ["system", "light", "dark"];
  theme.addEventListener("click", () => {
    const next = themes[(themes.indexOf(root.dataset.theme || "system") + 1) % themes.length];
    if (next === "system") delete root.dataset.theme;
    else root.dataset.theme = next;
    theme.querySelector("span").textContent = next;
    theme.setAttribute("aria-label", `Colours: ${next === "system" ? "as the system has them" : next}`);
  });

  // A title is shown by the mouse alone, and slowly; this shows it for the keyboard as well.
  const tip = make("div", {id: "tip", role: "tooltip", hidden: ""});
  document.body.append(tip);
  function tell(e) {
    const mark = e.target.closest && e.target.closest("a.mark");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.getAttribute("aria-label");
    const box = mark.getBoundingClientRect();
    const room = root.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${scrollX + Math.max(Math.min(box.left, room), 4)}px`;
    tip.style.top = `${scrollY + box.bottom + 6}px`;
  }
  document.addEventListener("focusin", tell);
  document.addEventListener("mouseover", tell);

  begin();
  follow();
  addEventListener("hashchange", follow);
})();
