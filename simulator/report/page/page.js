// The page: the list of groups of equal runs, the run that is shown, and its moments.

(() => {
  const root = document.documentElement;
  const main = document.getElementById("main");
  const report = JSON.parse(document.getElementById("runs").textContent);
  const views = new Map(); // by group, so that a run that is shown again is where it was
  let view = null;

  // table builds one from heads and rows of cells.
  function table(heads, rows) {
    const head = make("tr", {}, ...heads.map(([text, name]) => make("th", {scope: "col", class: name}, text)));
    return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  }

  function scroll(name, label, inside) {
    return make("div", {class: `scroll ${name}`, tabindex: 0, role: "region", "aria-label": label}, inside);
  }

  function section(name, title, ...inside) {
    return make("section", {class: name, "aria-label": title}, make("h3", {}, title), ...inside);
  }

  const note = (text) => make("p", {class: "note"}, text);
  const verdict = (run) => (run.passed ? "✔ passed" : "✘ failed");
  const runs = (n) => `${number(n)} run${n === 1 ? "" : "s"}`;

  // --- One run: what is drawn of it, and the moment that is shown.

  class View {
    constructor(group, number) {
      this.id = `r${number}`;
      this.group = group;
      this.article = make("article", {class: "run", "data-run": number, "aria-label": group.run.scenario}, this.head());
      if (group.runs > 1) this.article.append(this.spreads());
      if (group.run.history) this.story();
      else this.article.append(note("What happened in this run is not on this page: there was no room for it. The command above shows it."));
      this.article.addEventListener("click", (e) => this.click(e));
    }

    head() {
      const {run, sentence, replay} = this.group;
      const facts = [
        ["Survivors", several(run.survivors)], ["Down", several(run.down)],
        ["Lease held at the end", run["lease-holder"] ? `by ${run["lease-holder"]}` : "by nobody"], ["Resolved after", run["resolved-after"] || "not resolved"],
        ["Two sides at work", run["double-active"] && clock(ms(run["double-active"]))], ["Nobody at work", run["nobody-active"] && clock(ms(run["nobody-active"]))],
        ["Trace hash", make("code", {}, run["trace-hash"])],
      ].filter((f) => f[1] !== undefined).map(([name, is]) => make("div", {}, make("dt", {}, name), make("dd", {}, is)));
      if (replay) {
        facts.push(make("div", {class: "wide"}, make("dt", {}, "Play it again"), make("dd", {}, make("code", {class: "replay"}, replay), " ",
          make("button", {type: "button", class: "copy", "aria-label": "Copy the command"}, "copy"))));
      }
      const head = make("header", {}, make("h2", {}, `${run.scenario} `, make("span", {class: "seed"}, `seed ${run.seed}`)),
        make("p", {class: `badge ${run.passed ? "passed" : "failed"}`}, verdict(run)));
      if (sentence) head.append(make("p", {class: "sentence"}, sentence));
      if (run.failures.length) head.append(make("ul", {class: "failures", "aria-label": "Why it failed"}, ...run.failures.map((f) => make("li", {}, f))));
      head.append(make("dl", {class: "facts"}, ...facts));
      return head;
    }

    // spreads tell of the other runs that came to the same.
    spreads() {
      const g = this.group;
      const unresolved = g.runs - g["resolved-after"].runs;
      return section("group", `${runs(g.runs)} that came to the same`,
        make("p", {}, `Same survivors, same decisions${g.run.passed ? "" : ", same failure"}: seeds ${g.seeds}. The first of them is drawn below.`,
          unresolved ? ` Not resolved at the end: ${number(unresolved)}.` : ""),
        make("div", {class: "spreads"}, drawSpread("Resolved after:", g["resolved-after"]), drawSpread("Two sides at work:", g["double-active"]),
          drawSpread("Nobody at work:", g["nobody-active"])));
    }

    story() {
      const m = this.m = modelOf(this.group.run);
      this.chart = new Chart(m, this.id);
      this.zoom = 1;
      this.now = 0;
      const legend = make("p", {class: "to-legend"}, make("a", {href: "#legend-h"}, "Legend"));
      const time = section("time", "What everybody did", legend, this.chart.element);
      if (m.until < m.end) time.append(note(`Nothing happens between ${clock(m.last)} and the end of the run at ${clock(m.end)}.`));
      if (m.hidden) time.append(note(`${number(m.hidden)} members with rarer histories are not drawn.`));
      this.graph = make("figure", {class: "graph"});
      this.matrix = scroll("matrix", "Who sees whom", "");
      const cluster = section("cluster", "The cluster at this moment", this.graph, make("h3", {}, "Who sees whom"), this.matrix, note(matrixKey));
      this.article.append(time, this.player(), make("div", {class: "stage"}, cluster, this.events()));
      this.wide = this.chart.wide;
      this.slider.addEventListener("input", () => this.go(+this.slider.value));
    }

    player() {
      const icon = (name) => make("svg", {class: "icon", "aria-hidden": "true"}, make("use", {href: `#i-${name}`, width: 16, height: 16}));
      const step = (to, label, inside) => make("button", {type: "button", "data-step": to, "aria-label": label}, inside);
      const zoom = (by, label, inside) => make("button", {type: "button", "data-zoom": by, "aria-label": label}, inside);
      this.slider = make("input", {type: "range", class: "slider", min: 0, max: Math.max(this.m.events.length - 1, 0), value: 0, step: 1, "aria-label": "Moment"});
      this.playButton = make("button", {type: "button", "data-step": "play", "aria-label": "Play", "aria-pressed": "false"}, "play");
      this.moment = make("p", {class: "moment", "aria-live": "polite"});
      const controls = make("div", {class: "controls", role: "group", "aria-label": "Step through the run"},
        step("first", "First event", icon("first")), step("-1", "One event back", icon("back")), this.playButton, step("1", "One event on", icon("on")),
        step("last", "Last event", icon("last")), this.slider,
        make("span", {class: "zoom", role: "group", "aria-label": "Time axis"}, zoom(0.5, "Time axis narrower", "−"), zoom(2, "Time axis wider", "+")));
      return section("player", "Moment by moment", controls, this.moment);
    }

    events() {
      this.rows = this.m.events.map((e, i) => make("tr", {
        id: `${this.id}-e${i}`, "data-event": i, "data-kind": e.kind, class: e.kind === "VIOLATION" ? "bad" : important.includes(e.kind) ? "key" : null,
      }, make("td", {class: "num"}, make("a", {href: `#${this.id}-e${i}`}, stamp(e.t))), make("td", {class: "who"}, e.who), make("td", {class: "what"}, e.word),
      make("td", {}, e.text)));
      const all = section("events", "Events", scroll("", "Events", table([["Time", "num"], ["Member"], ["What"], ["In words"]], this.rows)));
      const left = this.group["events-left"];
      if (left) all.append(note(`${number(left)} events are not told here: sbr simulate -o json has them.`));
      if (this.m.truncated) all.append(note("More changed in this run than a history holds; what came later is missing above."));
      return all;
    }

    // shown is called when the view is on the page: what depends on its size is drawn then.
    shown() {
      if (!this.m) return;
      this.chart.scale();
      if (this.begun) return;
      this.begun = true;
      const telling = ["decision", "VIOLATION", "partition", "cut"].map((k) => this.m.events.findIndex((e) => e.kind === k)).find((i) => i >= 0);
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
      if (!this.m || this.rows.length === 0) return;
      this.rows[this.now].removeAttribute("aria-current");
      this.now = Math.min(Math.max(i, 0), this.rows.length - 1);
      const row = this.rows[this.now], event = this.m.events[this.now];
      row.setAttribute("aria-current", "true");
      // Only the list scrolls: the page stays where the reader is.
      const list = row.closest(".scroll");
      const top = row.offsetTop - list.querySelector("thead").offsetHeight; // no head on a narrow screen
      if (top < list.scrollTop || row.offsetTop + row.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 3;
      this.slider.value = this.now;
      this.slider.setAttribute("aria-valuetext", `${clock(event.t)}, ${event.line}`);
      this.moment.replaceChildren(make("b", {}, clock(event.t)), ` event ${this.now + 1} of ${this.rows.length}: ${event.line}`);
      for (const end of ["x1", "x2"]) this.chart.now.setAttribute(end, percent(this.chart.share(event.t)));
      const s = stateAt(this.m, event.t);
      this.graph.replaceChildren(drawGraph(this.m, s), make("figcaption", {}, graphKey));
      this.matrix.replaceChildren(drawMatrix(this.m, s));
      this.reveal();
    }

    // reveal scrolls a widened time axis to the moment.
    reveal() {
      const track = this.wide.parentElement, x = this.chart.share(this.m.events[this.now].t) * this.wide.clientWidth;
      if (this.zoom > 1 && (x < track.scrollLeft + 20 || x > track.scrollLeft + track.clientWidth - 40)) track.scrollLeft = x - track.clientWidth / 2;
    }

    widen(factor) {
      this.zoom = Math.min(Math.max(this.zoom * factor, 1), 256);
      this.wide.style.width = `${this.zoom * 100}%`;
      this.chart.scale();
      const track = this.wide.parentElement;
      track.scrollLeft = this.chart.share(this.m.events[this.now].t) * this.wide.clientWidth - track.clientWidth / 2;
    }

    play(on) {
      clearInterval(this.timer);
      this.timer = null;
      if (!this.m) return;
      if (on && this.now === this.rows.length - 1) this.go(0);
      if (on) {
        this.timer = setInterval(() => {
          this.go(this.now + 1);
          if (this.now === this.rows.length - 1) this.play(false);
        }, 400);
      }
      this.moment.setAttribute("aria-live", on ? "off" : "polite"); // nobody wants to hear every step of a film
      this.playButton.setAttribute("aria-pressed", on);
      this.playButton.setAttribute("aria-label", on ? "Stop" : "Play");
      this.playButton.textContent = on ? "stop" : "play";
    }

    key(e) {
      const far = e.shiftKey ? 10 : 1;
      const moves = {ArrowLeft: () => this.go(this.now - far), ArrowRight: () => this.go(this.now + far),
        Home: () => this.go(0), End: () => this.go(this.rows.length - 1), " ": () => this.play(!this.timer)};
      if (!this.m || !moves[e.key]) return;
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
    const group = report.groups[number];
    if (!group) return;
    if (view) view.play(false);
    if (!views.has(number)) views.set(number, new View(group, number));
    view = views.get(number);
    main.replaceChildren(view.article);
    view.shown();
    for (const row of document.querySelectorAll(".runs tbody tr")) {
      if (+row.dataset.run === number) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }

  function follow() {
    const [, run, event] = /^#r(\d+)(?:-e(\d+))?$/.exec(location.hash) || [];
    if (run === undefined) return;
    show(+run);
    if (event !== undefined) view.go(+event);
  }

  // --- The list of groups.

  function list() {
    const heads = [["Verdict"], ["Scenario"], ["Runs", "num"], ["Seeds"], ["Survivors"], ["Down"], ["Resolved after"], ["Why they failed"]];
    const rows = report.groups.map((g, i) => {
      const {run} = g, s = g["resolved-after"], why = run.failures;
      const resolved = !s.runs ? "not resolved" : s.min === s.max ? `${tenths(s.min)} s` : `${tenths(s.min)} to ${tenths(s.max)} s`;
      return make("tr", {"data-run": i, class: run.passed ? "passed" : "failed"}, make("td", {class: "verdict"}, verdict(run)),
        make("th", {scope: "row"}, make("button", {type: "button", class: "show", "data-show": i}, run.scenario)),
        make("td", {class: "num"}, number(g.runs)), make("td", {}, cut(g.seeds, 24)), make("td", {}, several(run.survivors)), make("td", {}, several(run.down)),
        make("td", {}, resolved), make("td", {}, why.length ? why[0] + (why.length > 1 ? ` (and ${why.length - 1} more)` : "") : ""));
    });
    const find = make("input", {type: "search", id: "find", autocomplete: "off"});
    const which = make("select", {id: "which"}, make("option", {value: ""}, "all"), make("option", {value: "failed"}, "failed"), make("option", {value: "passed"}, "passed"));
    const found = make("output", {id: "found", for: "find which"});
    const filter = () => {
      const wanted = find.value.trim().toLowerCase().split(/\s+/);
      let groups = 0, all = 0;
      rows.forEach((row, i) => {
        const text = row.textContent.toLowerCase();
        row.hidden = !(wanted.every((w) => text.includes(w)) && (!which.value || row.classList.contains(which.value)));
        if (row.hidden) return;
        groups++;
        all += report.groups[i].runs;
      });
      found.textContent = `${groups} of ${rows.length} groups, ${runs(all)}`;
    };
    const form = make("form", {class: "filter", role: "search", "aria-label": "Runs"}, make("label", {}, "Search ", find), make("label", {}, "Show ", which), found);
    const of = table(heads, rows);
    const part = make("section", {class: "runs", "aria-labelledby": "runs-h"}, make("h2", {id: "runs-h"}, "Runs"), form,
      note("Runs of one scenario that came to the same are one row: the same survivors, decisions and failures. Choose one to see its first run."));
    if (report.unlisted) part.append(note(`${runs(report.unlisted)} in rarer groups are not listed.`));
    part.append(scroll("", "List of runs", of));
    find.addEventListener("input", filter);
    which.addEventListener("change", filter);
    form.addEventListener("submit", (e) => e.preventDefault());
    of.addEventListener("click", (e) => {
      const button = e.target.closest("[data-show]");
      if (!button) return;
      show(+button.dataset.show);
      main.focus();
    });
    main.before(part);
    filter();
  }

  function legend() {
    const swatch = ([name, text]) => make("li", {}, make("svg", {class: "swatch", "aria-hidden": "true"}, make("g", {class: `bar ${name}`},
      make("rect", {class: "fill", width: "100%", height: "100%"}), make("rect", {class: "pattern", width: "100%", height: "100%"}))), text);
    const sign = ([name, text]) => make("li", {}, make("svg", {class: `sign ${name}`, "aria-hidden": "true"}, make("use", {href: `#m-${name}`, width: 16, height: 16})), text);
    const states = ["starting", "arming", "up", "suspended", "waiting for the lease", "paused", "down", "left", "crashed"].map((s) => [lifeClass(s), s]);
    document.querySelector(".legend").append(make("ul", {}, ...states.map(swatch)),
      make("ul", {}, ...[["network", "network cut"], ["store", "lease store at fault"], ["lease", "lease held"], ["double", "two sides at work after a decision"],
        ["nobody", "nobody at work"]].map(swatch)),
      make("ul", {}, ...[["decision", "decides"], ["verdict", "writes a verdict"], ["learnt", "learns a verdict"], ["told", "tells others"],
        ["asked", "asks for the lease, or hears of it"], ["broken", "a promise is broken"]].map(sign)));
  }

  // --- Keys, colours, tips.

  document.addEventListener("keydown", (e) => {
    if (!view || e.ctrlKey || e.altKey || e.metaKey) return;
    if (e.target.matches("input:not([type=range]), select, textarea")) return;
    if (e.key === " " && e.target.closest("button, a")) return;
    view.key(e);
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
    tip.style.left = `${scrollX + Math.max(Math.min(box.left, root.clientWidth - tip.offsetWidth - 8), 4)}px`;
    tip.style.top = `${scrollY + box.bottom + 6}px`;
  }
  document.addEventListener("focusin", tell);
  document.addEventListener("mouseover", tell);

  root.classList.add("js");
  const first = report.groups[0];
  const one = report.runs === 1;
  document.title = (one ? `${first.run.scenario}, seed ${first.run.seed}` : `${runs(report.runs)}, ${number(report.failed)} failed`) + " – simulation report";
  const count = [`${runs(report.runs)}: `];
  if (report.failed) count.push(make("strong", {class: "bad"}, `✘ ${number(report.failed)} failed`), ", ");
  document.querySelector(".count").append(...count, `${number(report.runs - report.failed)} passed`);
  legend();
  if (!one && first) list();
  show(0);
  follow();
  addEventListener("hashchange", follow);
  addEventListener("resize", () => { if (view && view.m) view.chart.scale(); });
})();
