"use strict";
// What is drawn of a run, worked out from what `sbr simulate -o json` says of it. Times are milliseconds.

const maxOwn = 24; // the largest cluster in which every member has a lane of its own
const maxLanes = 40;

// ms reads a duration of Go: 1m14.821s, 8.2ms, 0s.
function ms(text) {
  const units = {h: 36e5, m: 6e4, s: 1e3, ms: 1, µs: 1e-3, ns: 1e-6};
  let all = 0;
  for (const [, number, unit] of (text || "").matchAll(/([\d.]+)(h|ms|m|s|µs|ns)/g)) all += number * units[unit];
  return all;
}

// clock writes a time as people read it.
function clock(t) {
  if (t === 0) return "0s";
  if (t < 1) return `${Math.round(t * 1000)}µs`;
  if (t < 1000) return `${Math.round(t)}ms`;
  const s = Math.round(t) / 1000;
  return s < 60 ? `${s}s` : `${Math.floor(s / 60)}m${+(s % 60).toFixed(3)}s`;
}

// stamp writes a time for a column: always to the millisecond.
function stamp(t) {
  const s = Math.round(t) / 1000;
  return `${Math.floor(s / 60)}:${(s % 60).toFixed(3).padStart(6, "0")}`;
}

const number = (n) => n.toLocaleString("en");

// few names some of many; several is for lists with more room.
function few(names, limit = 3) {
  if (names.length === 0) return "nobody";
  if (names.length <= limit) return names.join(limit === 3 ? ", " : " ");
  return `${names[0]} … ${names[names.length - 1]} (${number(names.length)})`;
}
const several = (names) => few(names, 12);

function limited(list, limit) {
  return list.length > limit ? [...list.slice(0, limit), `and ${list.length - limit} more`] : list;
}

const works = (state) => ["arming", "up", "suspended", "waiting for the lease"].includes(state);

// modelOf reads the history and the events of a run.
function modelOf(run) {
  const h = run.history;
  const m = {names: h.members, end: ms(h.until), truncated: h.truncated, index: new Map()};
  h.members.forEach((name, i) => m.index.set(name, i));
  for (const [former, name] of Object.entries(h.formerly || {})) {
    if (!m.index.has(former)) m.index.set(former, m.index.get(name));
  }
  m.watched = new Set((h.watched || h.members).map((name) => m.index.get(name)));
  m.changes = h.changes.map((c) => ({...c, t: ms(c.at), node: m.index.get(c.node)}));
  m.double = h["double-active"].map((s) => ({from: ms(s[0]), to: ms(s[1])}));
  m.nobody = h["nobody-active"].map((s) => ({from: ms(s[0]), to: ms(s[1])}));
  castInto(m, run.events);
  m.events = eventsOf(m, run.events);
  const last = Math.max(0, ...[m.changes, m.events].filter((all) => all.length).map((all) => all[all.length - 1].t));
  m.last = last;
  m.until = last * 13 / 12 < m.end * 0.9 ? Math.max(last * 13 / 12, 1000) : m.end; // a run goes on long after all is settled
  return m;
}

// --- Lanes: a member each, or in a large cluster those with equal histories together.

function castInto(m, events) {
  const paths = m.names.map(() => []);
  for (const c of m.changes) {
    if (!c.state) continue;
    const p = paths[c.node];
    if (p.length && p[p.length - 1].t === c.t) p.pop(); // it did not last
    p.push({t: c.t, state: c.state});
  }
  let keys = m.names.map((_, i) => String(i));
  if (m.names.length > maxOwn) {
    const fates = fatesOf(m, events);
    keys = fates.map((fate, i) => fate + paths[i].map((s) => s.state).join());
    // Where that are too many, it counts what became of them, not how.
    if (new Set(keys).size > maxLanes) keys = fates.map((fate, i) => fate + (paths[i].length ? paths[i][paths[i].length - 1].state : ""));
  }
  const lanes = new Map();
  keys.forEach((key, i) => lanes.has(key) ? lanes.get(key).push(i) : lanes.set(key, [i]));
  const kept = new Set([...lanes.values()].sort((a, b) => b.length - a.length).slice(0, maxLanes));
  m.lanes = [...lanes.values()].filter((nodes) => kept.has(nodes)).map((nodes) => (
    {nodes, label: few(nodes.map((i) => m.names[i])), size: nodes.length, lives: stretches(paths, nodes, m.end)}));
  m.laneOf = m.names.map(() => -1);
  m.lanes.forEach((lane, l) => lane.nodes.forEach((i) => { m.laneOf[i] = l; }));
  m.hidden = m.laneOf.filter((l) => l < 0).length;
}

// fatesOf says of each member what happened to it from outside. A member that held the lease, wrote a verdict or was at the end of a link
// that was cut has a lane of its own.
function fatesOf(m, events) {
  const fates = m.names.map(() => "");
  const own = (i) => { if (i !== undefined) fates[i] += `own${i} `; };
  for (const c of m.changes) {
    if (c.network) {
      (c.network.groups || []).forEach((group, g) => group.forEach((name) => { fates[m.index.get(name)] += `g${g} `; }));
      (c.network.cut || []).flat().forEach((name) => own(m.index.get(name)));
    }
    if (c.store !== undefined) fates[c.node] += `s${c.t}${c.store} `;
    if (c.holder) own(m.index.get(c.holder));
  }
  events.filter((e) => e.kind === "committed").forEach((e) => own(m.index.get(e.node)));
  return fates;
}

// stretches are those of the commonest path among the nodes; each begins when half of the nodes on that path have come to it.
function stretches(paths, nodes, end) {
  const on = new Map();
  for (const i of nodes) {
    const key = paths[i].map((s) => s.state).join();
    on.set(key, [...(on.get(key) || []), i]);
  }
  const best = [...on.values()].reduce((a, b) => (b.length > a.length ? b : a));
  const all = paths[best[0]].map(({state}, step) => {
    const times = best.map((i) => paths[i][step].t).sort((a, b) => a - b);
    return {state, from: times[Math.floor(times.length / 2)], to: end, early: times[0], late: times[times.length - 1]};
  });
  all.forEach((s, i) => { if (i > 0) all[i - 1].to = s.from; });
  return all.filter((s) => s.state !== "absent");
}

// --- Events, in the words of people.

// Of these kinds each event says something of its own.
const alone = ["decision", "committed", "VIOLATION", "partition", "cut", "heal", "clock", "store", "drawn"];
const important = ["decision", "committed", "down", "partition", "cut", "heal", "crash", "VIOLATION"];

const kindWords = {
  start: "starts", boot: "boots", crash: "crashes", pause: "is paused", resume: "runs again", leave: "leaves", asks: "asks for the lease",
  reads: "reads the lease", answer: "hears of the lease", releases: "releases the lease", lost: "loses the lease", committed: "writes a verdict",
  verdict: "learns a verdict", decision: "decides", resumed: "resumes", down: "goes down", armed: "arms", partition: "network", cut: "network",
  heal: "network", store: "lease store", VIOLATION: "promise broken",
};

function eventsOf(m, events) {
  const all = [], last = new Map(), faults = faultsOf(m);
  const told = new Set(m.changes.filter((c) => c.store !== undefined).map((c) => `${c.t} ${m.names[c.node]}`));
  const list = events.map((e) => ({t: ms(e.at), node: m.index.get(e.node), name: e.node, kind: e.kind, text: e.detail}))
    .filter((e) => e.kind !== "store" || !told.has(`${e.t} ${e.text.split(":")[0]}`)); // faultsOf says it for all members at once
  for (const e of [...list, ...faults].sort((a, b) => a.t - b.t)) {
    e.lane = e.node === undefined ? -1 : m.laneOf[e.node];
    e.count = 1;
    const key = `${e.lane} ${e.kind}`, before = last.get(key);
    if (m.names.length > maxOwn && before && e.t - before.t <= 3000 && !alone.includes(e.kind)) {
      before.count++; // the same happened to several members of a lane
      before.who = `${before.name} and ${number(before.count - 1)} more`;
      continue;
    }
    last.set(key, e);
    e.who = e.name || "";
    e.word = e.kind === "asks" && e.text.startsWith("for its standing") ? "asks everybody" : kindWords[e.kind] || e.kind;
    e.line = `${[e.who, e.word].filter(Boolean).join(" ")}${e.text ? ": " + e.text : ""}`;
    all.push(e);
  }
  for (const e of all) if (e.count > 1) e.line = `${e.who} ${e.word}: ${e.text}`;
  return all;
}

// faultsOf are the events of the way to the lease store: those that the same fault hits at the same moment are told together.
function faultsOf(m) {
  const all = new Map();
  for (const c of m.changes.filter((x) => x.store !== undefined)) {
    const key = `${c.t} ${c.store}`;
    if (!all.has(key)) all.set(key, {t: c.t, kind: "store", fault: c.store, names: []});
    all.get(key).names.push(m.names[c.node]);
  }
  return [...all.values()].map((e) => ({...e, text: `${e.fault || "works again"} for ${everybody(m, e.names)}`}));
}

const everybody = (m, names) => (names.length === m.names.length ? "all" : several(names));

// --- Bands: when the network was cut, the store was at fault, and who held the lease.

function bandsOf(m, takes, look) {
  const all = [];
  let open = null;
  m.changes.forEach((c, i) => {
    if (!takes(c)) return;
    if (m.changes.slice(i + 1).some((d) => d.t === c.t && takes(d))) return; // it did not last
    const said = look();
    if (open && said && open.title === said.title) return;
    if (open) open.to = c.t;
    open = said ? {...said, from: c.t, to: m.end} : null;
    if (open) all.push(open);
  });
  return all;
}

function networkBands(m) {
  let now = {};
  return bandsOf(m, (c) => c.network && (now = c.network), () => {
    const short = [], long = [];
    if (now.groups) {
      short.push(now.groups.map((g) => few(g)).join(" | "));
      long.push("partition: " + now.groups.map(several).join(" | "));
    }
    const cut = new Set((now.cut || []).map((c) => c.join("\n")));
    for (const [from, to] of now.cut || []) {
      const both = cut.has(`${to}\n${from}`);
      if (both && m.index.get(from) > m.index.get(to)) continue;
      short.push(`${from} ${both ? "✕" : "↛"} ${to}`);
      long.push(both ? `cut: ${from} and ${to}` : `cut one way: from ${from} to ${to}`);
    }
    return short.length ? {text: limited(short, 4).join(", "), title: limited(long, 40).join("; ")} : null;
  });
}

function storeBands(m) {
  const faults = m.names.map(() => "");
  return bandsOf(m, (c) => c.store !== undefined && ((faults[c.node] = c.store), true), () => {
    const kinds = new Map();
    faults.forEach((fault, i) => { if (fault) kinds.set(fault, [...(kinds.get(fault) || []), m.names[i]]); });
    if (kinds.size === 0) return null;
    const tell = (list) => [...kinds].map(([fault, names]) => `${fault} for ${names.length === m.names.length ? "all" : list(names)}`);
    return {text: tell(few).join(", "), title: tell(several).join("; ")};
  });
}

function leaseBands(m) {
  let holder = "";
  return bandsOf(m, (c) => c.holder !== undefined && ((holder = c.holder), true),
    () => (holder ? {text: holder, title: `${holder} holds the lease`} : null));
}

// --- The state of a run at one moment: the changes until then, one after the other.

function stateAt(m, t) {
  const all = m.names.map((_, i) => i);
  const life = all.map(() => null), leads = all.map(() => -1), hurt = all.map(() => false);
  const started = new Set(m.changes.filter((c) => c.t === 0 && c.state && c.state !== "absent").map((c) => c.node));
  const sees = new Map([...m.watched].map((i) => [i, all.map((j) => (started.has(i) && started.has(j) ? "alive" : "unknown"))]));
  let holder = -1, network = {};
  for (const c of m.changes) {
    if (c.t > t) break;
    if (c.state) life[c.node] = c.state === "absent" ? null : c.state;
    if (c.state === "starting" && sees.has(c.node)) sees.get(c.node).fill("unknown");
    if (c.sees) sees.get(c.node)[m.index.get(c.sees)] = c.as;
    if (c.network) network = c.network;
    if (c.leader !== undefined) leads[c.node] = c.leader ? m.index.get(c.leader) : -1;
    if (c.holder !== undefined) holder = c.holder ? m.laneOf[m.index.get(c.holder)] : -1;
    if (c.store !== undefined) hurt[c.node] = c.store !== "";
  }
  const heads = m.lanes.map((lane) => lane.nodes[0]); // those of one lane are cut off from the same others
  const s = {life: heads.map((i) => life[i]), hurt: heads.map((i) => hurt[i]), leads: heads.map((i) => (leads[i] < 0 ? -1 : m.laneOf[leads[i]])), holder};
  s.works = s.life.map(works);
  wire(m, s, heads, network);
  s.sees = m.lanes.map((by, i) => m.lanes.map((of, j) => sight(sees, by.nodes.filter((x) => m.watched.has(x)), of.nodes, i === j)));
  return s;
}

// wire says which lanes reach each other, and which are on one side: they reach each other both ways, maybe over others.
function wire(m, s, heads, network) {
  const group = new Map();
  (network.groups || []).forEach((names, g) => names.forEach((name) => group.set(m.index.get(name), g)));
  const cut = new Set((network.cut || []).map(([a, b]) => `${m.index.get(a)} ${m.index.get(b)}`));
  s.isCut = (a, b) => (group.get(heads[a]) || 0) !== (group.get(heads[b]) || 0) || cut.has(`${heads[a]} ${heads[b]}`);
  s.side = heads.map(() => -1);
  const order = [];
  heads.forEach((_, i) => {
    if (s.side[i] >= 0) return;
    const todo = [i];
    s.side[i] = order.push(i) - 1;
    for (let a = todo.pop(); a !== undefined; a = todo.pop()) {
      heads.forEach((__, b) => {
        if (s.side[b] >= 0 || s.isCut(a, b) || s.isCut(b, a)) return;
        s.side[b] = s.side[i];
        todo.push(b);
      });
    }
  });
  s.split = order.length > 1;
}

// sight is what the watched members of one lane think of those of another: what all think, or "some" where some fail what others do not.
function sight(sees, observers, subjects, same) {
  const sums = {alive: 0, failed: 0, missed: 0, unknown: 0};
  let pairs = 0;
  for (const i of observers) {
    for (const j of subjects) {
      if (same && i === j) continue;
      pairs++;
      sums[sees.get(i)[j]]++;
    }
  }
  if (observers.length === 0) return "unwatched";
  if (pairs === 0) return "alive";
  for (const word of ["failed", "missed", "unknown"]) if (sums[word] === pairs) return word;
  if (sums.failed) return sums.failed + sums.unknown === pairs ? "failed" : "some"; // failed as far as anybody knows
  return sums.missed ? "missed" : "alive";
}
