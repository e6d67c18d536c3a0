"use strict";
// What is known of the member, put into words: words.view makes of a state of the feed what page.js draws. It knows neither the document
// nor a clock.
const words = (() => {
  // --- Names, lists and numbers.

  const isolate = "\u2068", isolated = "\u2069"; // what stands between them reorders nothing around it
  const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd]/u; // cannot be seen, or moves others
  const escape = (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0");
  const maxName = 128; // of a name, and where there are several:
  const maxListed = 48;

  // clean makes what another member chose fit to be shown: no character that is invisible or reorders the text around it.
  function clean(text) {
    const letters = [...(text ?? "")];
    const shown = letters.slice(0, maxName);
    const name = shown.map((c) => (hidden.test(c) ? escape(c) : c)).join("") + (letters.length > maxName ? "…" : "");
    return shown.some((c) => c > "\x7f" && !hidden.test(c)) ? isolate + name + isolated : name; // it may be written from right to left
  }

  // line makes a sentence of the agent, which may quote names, fit to be shown.
  function line(text) {
    return [...(text ?? "").replace(/[\n\r\t]/g, " ")].map((c) => (hidden.test(c) && c !== isolate && c !== isolated ? escape(c) : c)).join("");
  }

  // short cuts a name; one that is isolated stays isolated.
  function short(name, most) {
    const letters = [...name];
    if (letters.length <= most) return name;
    return letters.slice(0, most - 1).join("") + "…" + (letters[0] === isolate ? isolated : "");
  }

  const nameOf = (incarnation) => incarnation.split("#")[0];
  const number = (n) => n.toLocaleString("en-US");
  const count = (n, one, many) => (n === 1 ? `1 ${one}` : `${number(n)} ${many}`);

  // list names a few of many: n1, n2 and 3 more.
  function list(names, most) {
    const shown = names.length > most ? names.slice(0, most - 1) : names;
    const all = shown.map((n) => short(clean(n), maxListed));
    if (shown.length < names.length) all.push(`${number(names.length - shown.length)} more`);
    return all.length < 2 ? all.join("") : `${all.slice(0, -1).join(", ")} and ${all.at(-1)}`;
  }

  // sentence ends what is said of something, once.
  function sentence(text) {
    const s = line(text.trim());
    return s === "" || s.endsWith(".") ? s : `${s}.`;
  }

  // --- Times: those of the machine that the member runs on, as in its log. zone is its name and how far it is ahead of UTC, in seconds.

  const local = (time, zone) => new Date(Date.parse(time) + zone.offset * 1000).toISOString();
  const clock = (time, zone) => `${local(time, zone).slice(11, 19)} ${zone.name}`;
  const stamp = (time, zone) => local(time, zone).slice(0, 19).replace("T", " ");

  // --- What is going on.

  const stateWords = {starting: "waiting to start", arming: "starting", "waiting-for-lease": "waiting for the lease"};
  const signs = {calm: "✔", wait: "!", bad: "✘", down: "■"}; // calm: nothing to do; down: this member must not work
  const fewNames = 5; // in a headline

  // read sorts the members: alive were not downed, suspects are those of them that cannot be reached, downed are the rest. missedBy says which
  // observers do not reach a member. Whom the newest verdict downed stands among the members until it is back.
  function read({status: as, health, config, zone}, why) {
    const status = {...as, members: [...as.members, ...(as.downed || [])]};
    const r = {s: status, health, config, zone, why, alive: [], suspects: [], downed: [], missedBy: new Map()};
    const place = new Map();
    status.members.forEach((m, i) => {
      place.set(m.name, i);
      if (m.status === "down") r.downed.push(m.name);
      else r.alive.push(m.name);
      if (kindOf(m) === "missed") r.suspects.push(m.name);
    });
    for (const {observer, subject} of status.reports || []) r.missedBy.set(subject, [...(r.missedBy.get(subject) || []), observer]);
    for (const by of r.missedBy.values()) by.sort((a, b) => (place.get(a) ?? -1) - (place.get(b) ?? -1));
    return r;
  }

  const missing = (r) => `${number(r.suspects.length)} of ${count(r.alive.length, "member", "members")} ` +
    `${r.suspects.length === 1 ? "is" : "are"} unreachable: ${list(r.suspects, fewNames)}`;
  const unready = (r) => (r.health.ready.ok ? "" : sentence(`Not ready: ${r.health.ready.reason || ""}`));

  // headline is how bad it is, what is going on, and what else there is to say of it.
  function headline(r) {
    const s = r.s, {live} = r.health;
    if (s.state === "down") {
      const why = r.why || live.reason || s.verdict.reason || "";
      return ["down", sentence(`This member was downed${why && ": "}${why.replace(/^down: /, "")}`),
        "It must not work any more. Started again, it comes back as a new incarnation."];
    }
    if (!live.ok) return ["bad", sentence(`The resolver does not work: ${live.reason || ""}`), "A node whose resolver fails goes down."];
    if (s.state === "starting") return ["bad", "This member does not take part yet.", sentence(`The reason: ${s["starting-because"] || ""}`)];
    if (s.state === "arming") {
      return ["wait", `This member is starting: it sees ${count(r.alive.length, "member", "members")} and decides nothing yet.`, unready(r)];
    }
    if (s["members-as-of"]) {
      return ["bad", `The Serf agent does not answer: the members are those of ${clock(s["members-as-of"], r.zone)}.`,
        "While it is silent this member decides nothing; after serf.rpc-timeout it goes down."];
    }
    if (s.state === "waiting-for-lease") {
      const {holder, name} = s.lease;
      const who = holder === s.incarnation ? "this member" : holder ? clean(nameOf(holder)) : "none";
      return ["bad", r.suspects.length ? `${missing(r)}; this side waits for the lease.` : `This side waits for the lease ${clean(name)}.`,
        `Lease holder at the last successful read: ${who}.`];
    }
    if (r.suspects.length) return ["bad", `${missing(r)}.`, trouble(r)];
    if (s.state === "suspended") return ["bad", "Suspended: this member does not know its standing yet.", trouble(r)];
    return whole(r);
  }

  // trouble says what it began with, and who decides.
  function trouble({s}) {
    const because = s["suspended-because"] ? sentence(`It began with: ${s["suspended-because"]}`) : "";
    let who = "";
    if (!s.deadline) who = s.leader && s.leader !== s.member ? `${clean(s.leader)} leads this side and decides.` : "No decision is due yet.";
    return `${because} ${who}`.trim();
  }

  // whole is the headline while nobody is unreachable.
  function whole(r) {
    const {reports, disagree, untagged, verdict: v} = r.s;
    let detail = unready(r);
    const fewer = r.downed.length > 0 && r.alive.length < v.survivors.length + v.down.length; // nobody is there in their place
    const tone = detail || disagree || untagged || fewer ? "wait" : "calm";
    if (r.downed.length) {
      detail += ` ${count(r.downed.length, "downed member is", "downed members are")} kept out: ${list(r.downed, fewNames)}.`;
    }
    detail = detail.trim();
    if (reports?.length) {
      const more = reports.length > 1 ? `; ${count(reports.length - 1, "more such report", "more such reports")}` : "";
      return ["wait", `This member reaches all, but ${clean(reports[0].observer)} does not reach ${clean(reports[0].subject)}${more}.`, detail];
    }
    const n = r.alive.length;
    const all = n < 2 ? "This member is alone: it knows no other." : `${n === 2 ? "Both" : `All ${number(n)}`} members reach each other.`;
    return [tone, all, detail];
  }

  function countdown({s, zone}) {
    if (!s.deadline || s.state === "down") return null;
    let what = "A decision at";
    if (s.state === "waiting-for-lease") what = "The next step at";
    else if (!s.responsible && s.leader && s.leader !== s.member) what = `Without a decision by ${clean(s.leader)}, this member decides at`;
    const since = s["suspended-since"];
    return {text: `${what} ${clock(s.deadline, zone)}`, at: s.deadline, until: Date.parse(s.deadline), from: since ? Date.parse(since) : 0};
  }

  function warnings({s}) {
    const all = [], l = s.lease;
    const warn = (names, one, many, what, then) => {
      if (names?.length) all.push(`${count(names.length, `member ${one}`, `members ${many}`)} ${what}: ${list(names, 8)}. ${then}`);
    };
    if (l.refused && s.state !== "starting") {
      all.push(`The lease store refuses this member, so in a partition it cannot win: ${line(l.refused)}. sbr lease doctor tries each right.`);
    }
    if (l.kind && !l.store && s.state !== "starting") {
      all.push("It is not known which store keeps the lease, so a member with another one is not noticed. sbr lease doctor says why.");
    }
    if (s["state-file"]) {
      all.push(`The state file cannot be written, so a restart would forget who the members are: ${line(s["state-file"])}. Free some space.`);
    }
    warn(s["other-store"], "keeps", "keep", "the lease in another store than the cluster",
      "Two sides with two stores would both win, so they are suspended: give them the lease section of the others.");
    warn(s.disagree, "has", "have", "another configuration",
      "Two sides that decide by different rules are no resolver: give every member the same sbr.yaml.");
    warn(s.untagged, "runs", "run", "no resolver",
      "Without one a member is not counted and cannot be told to go down: start sbr agent on every member.");
    return all;
  }

  function facts(r) {
    const s = r.s, l = s.lease;
    const counts = [count(r.alive.length, "member", "members")];
    if (r.suspects.length) counts.push(`${number(r.suspects.length)} unreachable`);
    if (r.downed.length) counts.push(`${number(r.downed.length)} downed`);
    if (s["members-as-of"]) counts.push(`as of ${clock(s["members-as-of"], r.zone)}`);
    const said = ({reason}) => s.state === "down" || reason === `${s.state}: ${s["suspended-because"]}`; // by the headline
    const answer = (label, c) => ({label, bad: !c.ok, value: c.ok ? "yes" : c.reason && !said(c) ? `no: ${line(c.reason)}` : "no"});
    return [
      {label: "Members", value: counts.join(", "), bad: Boolean(s["members-as-of"])},
      ...(s["suspended-since"] ? [{label: "Suspended since", value: clock(s["suspended-since"], r.zone), bad: true}] : []),
      {label: "Leader of this side", value: s.leader ? clean(s.leader) + (s.leader === s.member ? " (this member)" : "") : "nobody"},
      l.name ? {
        label: `Lease ${clean(l.name)} (${clean(l.kind)})`, value: `held by ${l.holder ? clean(nameOf(l.holder)) : "nobody"}, token ${number(l.token)}`,
      } : {label: "Lease", value: "none: the strategy needs none"},
      ...(s.singletons || []).map(singleton),
      answer("Live", r.health.live), answer("Ready", r.health.ready),
      {label: "Incarnation", value: clean(s.incarnation), code: true},
      {label: "Configuration digest", value: clean(s["config-digest"]), code: true, bad: Boolean(s.disagree)},
      {label: "Version", value: clean(s.version)},
    ];
  }

  // singleton says where one runs whose program is attached to the agent, and what its member waits for.
  function singleton(e) {
    let where = e.holder ? `runs on ${clean(e.holder)}` : "runs nowhere, as far as is known";
    if (e["holder-unreachable"]) where += ", unreachable";
    if (e.token) where = "runs here";
    const waits = (e["waiting-for"] || []).map(clean);
    if (e.margin) waits.push(`removal margin ${line(e.margin)}`);
    if (e["lease-holder"]) waits.push(`the lease, held by ${clean(nameOf(e["lease-holder"]))}`);
    return {label: `Singleton ${clean(e.name)}`, value: [where, line(e.phase), ...(waits.length ? [`waits for ${waits.join(", ")}`] : [])].join(", ")};
  }

  function verdict({s}) {
    const v = s.verdict;
    if (!v.token) return null;
    const people = (incarnations) => {
      const names = incarnations.map(nameOf);
      return {short: list(names, 12) || "nobody", all: names.length > 12 ? list(names, names.length) : ""};
    };
    let fate = "This member came later.";
    if (v.survivors.includes(s.incarnation)) fate = "This member is among the survivors.";
    else if (v.down.includes(s.incarnation)) fate = "The verdict downs this member.";
    else if (s.state === "down") fate = "This member is not among the survivors.";
    return {token: v.token, by: clean(nameOf(v["decided-by"])), reason: sentence(v.reason), survivors: people(v.survivors), down: people(v.down), fate};
  }

  // --- The members, in the table and in the picture of the cluster.

  const besides = 16; // so many have their names beside them in the ring
  const inRing = 60; // of more there are groups of names
  const allLinks = 24; // of more only the broken links are drawn,
  const maxLinks = 1200; // and of those so many

  const sights = {reached: "reachable", missed: "unreachable", downed: "downed"};
  const sightSigns = {reached: "", missed: "✕ ", downed: "■ "};

  const kindOf = (m) => (m.status === "down" ? "downed" : m.reachable ? "reached" : "missed");

  function row(r, m) {
    const s = r.s, kind = kindOf(m), missedBy = r.missedBy.get(m.name) || [], usual = kind === "reached" && m.status === "up";
    const is = {
      self: m.incarnation === s.incarnation, leader: m.name === s.leader && m.reachable, holder: m.incarnation !== "" && m.incarnation === s.lease.holder,
      untagged: s.untagged?.includes(m.name), disagree: s.disagree?.includes(m.name), elsewhere: s["other-store"]?.includes(m.name),
    };
    const notes = [
      is.self && "this member", is.leader && "★ leads this side", is.holder && "◆ holds the lease",
      is.untagged && "⚠ no resolver", is.disagree && "⚠ other configuration", is.elsewhere && "⚠ other lease store",
    ].filter(Boolean).join(", ");
    const by = list(missedBy, 4) || (kind === "missed" ? "this member" : "");
    const name = clean(m.name), state = line(m.status), odd = is.untagged || is.disagree || is.elsewhere;
    const sight = sights[kind] + (kind === "reached" && !usual ? `, ${state}` : "");
    return {
      name, kind, by, notes, status: state, self: is.self, holder: is.holder,
      sight: sightSigns[kind] + sights[kind], addr: clean(m.address), roles: clean((m.roles || []).join(" ")), id: clean(m.incarnation),
      // title says all of it, word what is not as usual. inside stands in its node, sign behind its name among many.
      title: `${name}: ${sight}${notes && `, ${notes}`}${by && `; not reached by ${by}`}`,
      word: is.self ? "this member" : usual ? "" : kind === "reached" ? state : sights[kind],
      inside: inside(r, kind, is.leader), sign: sign(kind, odd, is, missedBy.length), odd: odd || m.status === "joining",
    };
  }

  // inside is the side of a member, or that it is gone, and that it leads. Among many there is room for one sign.
  function inside(r, kind, leader) {
    if (kind !== "reached") return kind === "downed" ? "■" : "B";
    const side = r.suspects.length ? "A" : "";
    if (!leader) return side;
    return r.s.members.length > besides ? "★" : `★${side}`;
  }

  function sign(kind, odd, is, missedBy) {
    const missed = missedBy > 0 ? `✕${number(missedBy)}` : kind === "missed" ? "✕" : "";
    return (odd ? "⚠" : "") + (is.leader ? "★" : "") + (is.holder ? "◆" : "") + (kind === "downed" ? "■" : missed);
  }

  // links says who reaches whom as far as it is known: between two members of this side what they report, to the others only what is broken.
  // from and to are places in the list of members; a one-way link works in that direction alone.
  function links(r) {
    const all = [], {members, incarnation} = r.s;
    const misses = (by, of) => r.missedBy.get(of.name)?.includes(by.name) || (by.incarnation === incarnation && !of.reachable);
    members.forEach((a, i) => members.slice(i + 1).forEach((b, k) => {
      if (all.length >= maxLinks || kindOf(a) === "downed" || kindOf(b) === "downed") return;
      const j = i + 1 + k, missesB = misses(a, b), missesA = misses(b, a);
      if (!a.reachable || !b.reachable ? missesA || missesB : missesA && missesB) all.push({kind: "cut", from: i, to: j}); // whom nobody reaches nobody hears
      else if (missesB) all.push({kind: "one-way", from: j, to: i});
      else if (missesA) all.push({kind: "one-way", from: i, to: j});
      else if (a.reachable && b.reachable && members.length <= allLinks) all.push({kind: "open", from: i, to: j});
    }));
    return all;
  }

  function ring(r) {
    let label = `${count(r.alive.length - r.suspects.length, "member", "members")} on this side`;
    if (r.suspects.length) label += `; unreachable: ${list(r.suspects, 12)}`;
    if (r.downed.length) label += `; downed: ${list(r.downed, 12)}`;
    return {label: `${label}. The table of members has the same in words.`, links: links(r)};
  }

  function groups(r) {
    return [
      {kind: "missed", n: r.suspects.length, title: "cannot be reached from here (side B)"},
      {kind: "reached", n: r.alive.length - r.suspects.length, title: "on this side (side A)"},
      {kind: "downed", n: r.downed.length, title: "downed"},
    ].filter((g) => g.n > 0).map((g) => ({kind: g.kind, title: `${number(g.n)} ${g.title}`}));
  }

  const leads = "★ leads this side · ◆ holds the lease";
  const rank = {missed: 0, reached: 1, downed: 2};

  // view is all that is shown of a state. why is what the history says of the end of this member, if it is down.
  function view(state, why) {
    const r = read(state, why), s = r.s;
    const [tone, head, detail] = headline(r);
    const v = {
      tone, detail, headline: head, sign: signs[tone], system: clean(s.system), member: clean(s.member), state: stateWords[s.state] || line(s.state) || "unknown",
      countdown: countdown(r), warnings: warnings(r), facts: facts(r), members: s.members.map((m) => row(r, m)), verdict: verdict(r), config: r.config,
    };
    v.title = `${v.sign} ${v.member} ${v.state} – sbr`;
    if (s.members.length > inRing) {
      v.groups = groups(r);
      v.key = `✕ n: so many members do not reach it · ${leads}`;
      v.members.sort((a, b) => rank[a.kind] - rank[b.kind]); // what matters first
    } else {
      v.ring = ring(r);
      v.key = `A: this side · B: cannot be reached from here · ■: downed · ${leads} · dashed: cut · arrow: works in its direction alone` +
        (s.members.length > allLinks ? " · only broken links are drawn" : "");
    }
    return v;
  }

  // --- The history.

  const kindWords = {
    "asking-for-the-lease": "asks for the lease", "lease-granted": "lease granted", "lease-held": "lease held", "lease-unknown": "lease unknown",
    "lease-released": "lease released", "lease-lost": "lease lost", "agent-silent": "agent silent", "agent-answers": "agent answers", paused: "was paused",
  };
  const tones = {
    verdict: "key", decision: "key", "lease-granted": "key",
    unreachable: "bad", down: "bad", "lease-unknown": "bad", refused: "bad", "agent-silent": "bad",
  };

  const entry = (e, zone) => ({at: stamp(e.at, zone), word: kindWords[e.kind] || line(e.kind), text: line(e.text), tone: tones[e.kind] || ""});

  return {view, entry, clean, line, short, list, number, sentence, besides};
})();
