"use strict";
// The page of a run. Owns its state, which outlives a renewal of the data, and all that is drawn from both. Whatever a task or a
// file names is set as text or as an attribute, never parsed as markup. Long, since a page in one file without a build step has
// one script.

const SVG = "http://www.w3.org/2000/svg";
const POLL_MS = 2000;
const NARROW = "(max-width: 64rem)"; // as in page.css: one column
const PHONE = "(max-width: 48rem)"; // the panel takes the whole window
const MANY = 1000; // elites
const LONG = 100; // characters of an expression in the table
const STEPS = 200; // of the sliders of filters
const GAP = 65535; // in curves: not finite
const TOP = 65534; // in curves: the upper edge
const NEAR = 24; // pixels from the pointer to an elite on the front
const WRITE_MS = 400; // browsers allow few changes of the address in a while
const IN_ADDRESS = ["view", "face", "level", "sort", "descending"];

const $ = (id) => document.getElementById(id);
const state = {
  view: null, face: null, level: "", // of the third measure, "": the best of all
  sort: 0, descending: true,
  cell: null, // that the arrow keys start from
  ranges: new Map(), // number of a quantity -> [least, greatest], null: no bound
  shown: [], held: null, playing: false, paused: false,
};
let data, elites, byCell, visible, buttons, target, usual, writing, sheets = [];

// ---- elements

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") element.textContent = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

const el = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) => filled(document.createElementNS(SVG, name), attributes, children);

function number(value) {
  if (value === null) return "not finite";
  const short = Number(value.toPrecision(6));
  return (Math.abs(short) >= 1e6 && Math.abs(short) < 1e15 ? short.toLocaleString("en") : String(short)).replace("-", "−");
}

// As evo.report.plot.charts.written.
const written = (name) => name.replace(/^num_/, "number of ").replaceAll("_", " ");
const count = (value) => value.toLocaleString("en");
const percent = (value) => `${(100 * value).toFixed(1)} %`;
const label = (elite) => data.quantities.map((name, i) => `${name} ${number(elite.values[i])}`);
const webp = (text) => `data:image/webp;base64,${text}`;

function bytes(text) {
  const raw = atob(text), found = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) found[i] = raw.charCodeAt(i);
  return found;
}

// ---- data

// The JSON that evo.report.page.document packs.
const unpacked = (text) => new Response(new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("gzip"))).json();

function load(found) {
  const before = byCell;
  data = { ...found, quantities: found.quantities.map(written) };
  elites = data.elites.map((elite, row) => ({ ...elite, row, born: elite.values.at(-1), ...geometry(elite.outline) }));
  byCell = new Map(elites.map((elite) => [elite.cell, elite]));
  sheets = [data.pictures, data.pictures?.ancestors].map((sheet) => sheet && createImageBitmap(new Blob([bytes(sheet.atlas)], { type: "image/webp" })));
  target = data.fits && curve(data.fits.target);
  if (!byCell.has(state.cell)) state.cell = elites.length ? elites[0].cell : null;
  if (!data.map && (state.view === null || state.view === "map")) state.view = "gallery";
  state.view ??= "map";
  header();
  menus();
  axis($("horizontal"), data.map?.axes[0], "left");
  axis($("vertical"), data.map?.axes[1], "bottom");
  $("graphs").replaceChildren(...data.graphs.map(graph));
  ranges();
  drawCells();
  if (before) for (const elite of elites) buttons.get(elite.cell).classList.toggle("changed", before.get(elite.cell)?.hash !== elite.hash);
}

function drawCells() {
  buttons = new Map(elites.map((elite) => [elite.cell, cellButton(elite)]));
  apply();
}

function geometry(outline) {
  if (!outline) return {};
  const x = outline.filter((_, i) => i % 2 === 0), y = outline.filter((_, i) => i % 2 === 1);
  const left = Math.min(...x), bottom = Math.min(...y), width = Math.max(...x) - left, height = Math.max(...y) - bottom;
  const corners = x.map((each, i) => [each, y[i]]);
  return { left, bottom, width, height, corners, middle: [left + width / 2, bottom + height / 2] };
}

const path = (elite) => "M" + elite.corners.map(([x, y]) => `${1000 * x} ${1000 * (1 - y)}`).join("L") + "Z";

function curve(text) {
  const level = bytes(text), places = data.fits.places;
  let drawn = "", open = false;
  places.forEach((place, i) => {
    const value = level[2 * i] + 256 * level[2 * i + 1];
    if (value !== GAP) drawn += `${open ? "L" : "M"}${(1000 * place).toFixed(1)} ${(1000 - (1000 * value) / TOP).toFixed(1)}`;
    open = value !== GAP;
  });
  return drawn;
}

function plot(program) {
  const paths = [svg("path", { class: "target", d: target }), svg("path", { d: curve(data.fits.curves[program]) })];
  return svg("svg", { class: "plot", viewBox: "0 0 1000 1000", preserveAspectRatio: "none", "aria-hidden": "true" }, ...paths);
}

// ---- the head and the menus

function header() {
  $("name").textContent = data.name;
  $("run").textContent = data.run + (elites.length < data.counts.elites ? ` · the best ${count(elites.length)} elites are shown` : "");
  const { elites: found, cells, evaluations, generations } = data.counts;
  const facts = {
    elites: count(found), coverage: percent(found / cells), "best objective": found ? number(elites[0].values[0]) : "none",
    evaluations: count(evaluations), generations: count(generations),
  };
  $("facts").replaceChildren(...Object.entries(facts).map(([name, text]) => el("div", {}, el("dt", { text: name }), el("dd", { text }))));
}

function menus() {
  const faces = [...(data.pictures ? ["pictures"] : []), ...(data.fits ? ["curves"] : []), "objective"];
  if (!faces.includes(state.face)) state.face = faces[0];
  options($("face"), faces.map((name) => [name, name]), state.face);
  const levels = data.map?.levels ?? [];
  $("level").parentElement.hidden = !levels.length;
  options($("level"), [["", "best of all"], ...levels.map((name, i) => [String(i), name])], state.level);
  options($("sort"), [...data.quantities.map((name, i) => [String(i), name]), ["cell", "cell"]], String(state.sort));
  const used = new Map();
  for (const elite of elites) for (const name of elite.instructions) used.set(name, (used.get(name) ?? 0) + 1);
  $("instructions").replaceChildren(...[...used].sort((a, b) => b[1] - a[1]).map(([value, n]) => el("option", { value, label: `${value}, in ${n}` })));
  document.querySelector('[data-view="map"]').disabled = !data.map;
}

function options(select, pairs, value) {
  select.replaceChildren(...pairs.map(([key, text]) => el("option", { value: key, text })));
  select.value = value;
}

function axis(element, found, side) {
  const ticks = (found?.ticks ?? []).map(([place, text]) => {
    const tick = el("span", { text });
    tick.style[side] = `${100 * place}%`;
    return tick;
  });
  element.replaceChildren(...ticks, el("b", { text: found?.name ? `${found.name} →` : "" }));
  return element;
}

// A graph over generations, or the front, whose points lead to their elites.
function graph(found) {
  const { title, x, y, line, points } = found;
  const paths = [...(points ? [["dots", drawn(elites.map((elite) => spot(elite, found)))]] : []), ["", line], ["marks", ""]].map(([name, d]) => svg("path", { class: name, d }));
  const chart = svg("svg", { viewBox: "0 0 1000 1000", preserveAspectRatio: "none", role: "img", "aria-label": `${title}, by ${x.name}` }, ...paths);
  const links = (points ?? []).map(([row, marks]) => {
    const { cell } = elites[row], [across, up] = spot(elites[row], found), told = `cell ${cell}: ${label(elites[row]).join(", ")}`;
    const point = el("a", { href: link(cell), class: marks ? "point marked" : "point", "data-cell": cell, "aria-label": marks ? `${marks}, ${told}` : told });
    Object.assign(point.style, { left: `${100 * across}%`, bottom: `${100 * up}%` });
    if (marks) point.append(el("span", { class: across > 0.5 ? "before" : "", text: marks }));
    return point;
  });
  const area = el("div", { class: points ? "area front" : "area" }, chart, ...links);
  if (points) {
    area.addEventListener("pointermove", (event) => { if (event.target.closest("svg")) tip(nearest(event, found), new DOMRect(event.clientX, event.clientY)); });
    area.addEventListener("click", (event) => { if (event.target.closest("svg") && nearest(event, found)) open(nearest(event, found).cell); });
  }
  const [across, up] = ["horizontal", "vertical"].map((name) => el("div", { class: name, "aria-hidden": "true" }));
  return el("li", {}, el("h3", { text: title }), el("div", { class: "graph" }, axis(up, y, "bottom"), area, axis(across, x, "left")));
}

const fraction = (value, [low, high]) => ((value ?? NaN) - low) / (high - low);
const spot = (elite, { x, y, measure }) => [fraction(elite.values[1 + measure], x.ends), fraction(elite.values[0], y.ends)];
const upright = (generation, { x }) => `M${1000 * fraction(generation, x.ends)} 0V1000`;

const drawn = (spots) => spots.filter((at) => at.every((each) => each >= 0 && each <= 1)).map(([across, up]) => `M${1000 * across} ${1000 * (1 - up)}h0`).join("");
const atEdge = (at) => at.map((each) => Math.min(Math.max(0, each), 1)); // for an elite beyond the front's ends

function nearest({ clientX, clientY, currentTarget }, front) {
  const box = currentTarget.getBoundingClientRect();
  let best, least = NEAR;
  for (const elite of elites) {
    const [across, up] = spot(elite, front);
    const distance = Math.hypot(box.left + across * box.width - clientX, box.bottom - up * box.height - clientY);
    if (distance < least) [best, least] = [elite, distance];
  }
  return best;
}

// ---- filters

function extent(quantity) {
  const values = elites.map((elite) => elite.values[quantity]).filter((value) => value !== null);
  return values.length ? [Math.min(...values), Math.max(...values)] : [0, 0];
}

function ranges() {
  const focused = document.activeElement?.dataset?.bound;
  $("ranges").replaceChildren(...data.quantities.map((name, i) => {
    const [low, high] = extent(i);
    const value = (step) => low + ((high - low) * step) / STEPS;
    const step = (bound, otherwise) => bound === null ? otherwise : Math.round((STEPS * (bound - low)) / (high - low || 1));
    const bounds = state.ranges.get(i) ?? [null, null];
    const shown = el("output");
    const tell = () => {
      const [from, to] = state.ranges.get(i) ?? [null, null];
      shown.textContent = `${number(from ?? low)} to ${number(to ?? high)}`;
    };
    const slider = (end) => {
      const text = `${name}, ${end ? "at most" : "at least"}`;
      const input = el("input", { type: "range", min: 0, max: STEPS, "aria-label": text, "data-bound": `${i}.${end}`, disabled: low === high });
      input.value = step(bounds[end], end ? STEPS : 0);
      input.addEventListener("input", () => {
        const now = [...(state.ranges.get(i) ?? [null, null])];
        const free = Number(input.value) === (end ? STEPS : 0);
        now[end] = free ? null : value(Number(input.value));
        state.ranges.set(i, now);
        tell();
        apply();
      });
      return input;
    };
    const field = el("fieldset", {}, el("legend", {}, `${name} `, shown), slider(0), slider(1));
    tell();
    return field;
  }));
  if (focused) document.querySelector(`[data-bound="${focused}"]`)?.focus();
}

function matches(elite) {
  const within = data.quantities.every((name, i) => {
    const [from, to] = state.ranges.get(i) ?? [null, null];
    const value = elite.values[i];
    return (from === null || (value !== null && value >= from)) && (to === null || (value !== null && value <= to));
  });
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  return within && words.every((word) => elite.instructions.some((name) => name.toLowerCase().includes(word)));
}

function order(one, two) {
  const sign = state.descending ? -1 : 1;
  if (state.sort === "cell") return sign * one.cell.localeCompare(two.cell, "en", { numeric: true });
  const [a, b] = [one.values[state.sort], two.values[state.sort]];
  if (a === b) return one.row - two.row;
  return a === null ? 1 : b === null ? -1 : sign * (a - b);
}

// ---- cells

// A program has a number: an elite its row; an ancestor, which is none any more, its place behind all elites.
function face(program, shown = state.face) {
  if (shown === "curves") return plot(program);
  const isElite = program < elites.length, place = isElite ? program : program - elites.length;
  const kind = isElite ? "tile" : "tile past";
  if (shown === "pictures") {
    const { columns, side } = isElite ? data.pictures : data.pictures.ancestors;
    const tile = el("canvas", { class: kind, width: side, height: side });
    // A copy: to draw a part of an image that large costs a browser as much as all of it.
    const draw = (sheet) => tile.getContext("2d").drawImage(sheet, -side * (place % columns), -side * Math.floor(place / columns));
    sheets[isElite ? 0 : 1].then(draw);
    return tile;
  }
  const tile = el("span", { class: kind }), elite = elites[program];
  tile.style.background = color(elite?.values[0] ?? data.ancestors[place].objective);
  return tile;
}

function color(objective) {
  const { ends, colors } = data.scale, at = Math.min(Math.max(0, fraction(objective, ends) || 0), 1) * (colors.length - 1), i = Math.floor(at);
  return `color-mix(in srgb, ${colors[i]}, ${colors[i + 1] ?? colors[i]} ${100 * (at - i)}%)`;
}

function cellButton(elite) {
  const name = `Cell ${elite.cell}, rank ${elite.row + 1}: ${label(elite).join(", ")}`;
  const button = el("button", { type: "button", class: "cell", "aria-label": name, "data-cell": elite.cell, tabindex: -1 }, face(elite.row));
  if (state.face === "curves") button.style.setProperty("--tint", color(elite.values[0]));
  return button;
}

function placed(button, elite, isMap) {
  const style = button.style, tile = button.querySelector(".tile");
  const share = (value) => `${100 * value}%`;
  for (const name of ["left", "top", "width", "height", "clipPath"]) style[name] = "";
  let side = 1;
  if (isMap) {
    const { left, bottom, width, height, corners } = elite;
    Object.assign(style, { left: share(left), top: share(1 - bottom - height), width: share(width), height: share(height) });
    const inside = corners.map(([x, y]) => `${share((x - left) / width)} ${share(1 - (y - bottom) / height)}`);
    if (corners.length !== 4 || corners.some(([x, y]) => x !== corners[0][0] && x !== corners[2][0] && y !== corners[0][1])) {
      style.clipPath = `polygon(${inside.join(",")})`;
    }
    side = Math.max(1, (height * data.map.rows) / (width * data.map.columns));
  }
  if (tile) tile.style.width = share(side);
}

// One of the elites that share a place: the one that the page names, unless a filter hides it.
function onMap(found) {
  const places = new Map();
  for (const elite of found) {
    const place = elite.outline.join();
    if ((state.level === "" || elite.level === Number(state.level)) && (elite.on_map || !places.has(place))) places.set(place, elite);
  }
  return [...places.values()];
}

// What the colours of objectives mean, where they are shown.
function scale() {
  const isTable = state.view === "table";
  $("scale").hidden = !data.scale || state.face === "pictures" || isTable;
  $("legend").replaceChildren(...(isTable ? [] : state.face === "curves" ? legend() : []));
  if ($("scale").hidden) return;
  const { ends, colors } = data.scale, [low, bar, high] = $("scale").children;
  [low.textContent, high.textContent] = [`objective ${number(ends[0])}`, number(ends[1])];
  bar.style.background = `linear-gradient(to right, ${colors.join(", ")})`;
  $("scale").setAttribute("aria-label", `Colours: objective from ${number(ends[0])} to ${number(ends[1])}`);
}

function apply() {
  const hadFocus = document.activeElement?.classList.contains("cell") && $("stage").contains(document.activeElement);
  const isMap = state.view === "map", isTable = state.view === "table", stage = $("stage");
  // With more than two measures, several elites share a place of the map, which shows one of them.
  const found = elites.filter(matches);
  visible = (isMap ? onMap(found) : found).sort(order);
  scale();
  remember();
  stage.className = $("figure").className = isMap ? "map" : "gallery";
  stage.setAttribute("aria-label", isMap ? "Map of elites" : "Gallery of elites");
  for (const id of ["vertical", "horizontal"]) $(id).hidden = !isMap || (id === "vertical" && data.map.axes.length < 2);
  $("figure").hidden = $("hint").hidden = isTable;
  $("tabular").hidden = !isTable;
  $("size").disabled = isTable;
  $("count").textContent = `${count(visible.length)} of ${count(elites.length)} elites`;
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", button.dataset.view === state.view);
  $("direction").textContent = state.descending ? "Descending" : "Ascending";
  if (isTable) table();
  else stageCells(isMap);
  mark();
  if (hadFocus) buttons.get(state.cell)?.focus({ preventScroll: true });
}

function stageCells(isMap) {
  const size = $("figure").style; // of the stage and of the axis below it
  if (isMap) {
    size.setProperty("--columns", data.map.columns);
    size.setProperty("--rows", data.map.rows);
  }
  size.setProperty("--cell", `${Math.max(isMap ? 0 : 56, Number($("size").value))}px`);
  const shown = visible.map((elite) => {
    const button = buttons.get(elite.cell);
    placed(button, elite, isMap);
    return button;
  });
  const unit = { viewBox: "0 0 1000 1000", preserveAspectRatio: "none", "aria-hidden": "true" };
  const ring = svg("svg", { ...unit, class: "ring" }, ...["halo", "descends", "chosen", ""].map((name) => svg("path", { class: name })));
  $("stage").replaceChildren(...(isMap ? [svg("svg", unit, svg("path", { class: "empty", d: data.map.outlines })), ...shown, ring] : shown));
  rove();
}

function rove() {
  if (!visible.some((elite) => elite.cell === state.cell) && visible.length) state.cell = visible[0].cell;
  for (const [cell, button] of buttons) button.tabIndex = cell === state.cell ? 0 : -1;
}

// Marks the elites that the panel shows, and the one that is looked at, wherever they are: in all views, graphs and lines of descent.
function mark(elite) {
  for (const each of document.querySelectorAll("[data-cell].on")) each.classList.remove("on");
  for (const each of document.querySelectorAll("[data-cell][aria-current]")) each.removeAttribute("aria-current");
  const same = ({ cell }) => document.querySelectorAll(`[data-cell="${CSS.escape(cell)}"]`);
  const chosen = state.shown.map((cell) => byCell.get(cell)), marked = elite ? [...chosen, elite] : chosen;
  for (const each of chosen.flatMap((one) => [...same(one)])) each.setAttribute("aria-current", "true");
  if (elite) for (const each of same(elite)) each.classList.add("on");
  const lines = marked.map(descends).join(""), ofChosen = outlines(chosen), ofElite = outlines(elite ? [elite] : []);
  document.querySelectorAll("#stage .ring path").forEach((each, i) => each.setAttribute("d", [lines + ofChosen + ofElite, lines, ofChosen, ofElite][i]));
  data.graphs.forEach((each, i) => {
    const d = each.points ? drawn(marked.map((one) => atEdge(spot(one, each)))) : marked.map(({ born }) => upright(born + 1, each)).join("");
    $("graphs").children[i].querySelector(".marks").setAttribute("d", d);
  });
}

const outlines = (some) => (data.map ? some.map(path).join("") : "");

// The way of an elite's line of first parents over the map, as far as it is shown: a cell that once had an elite has one still.
function descends({ origin }) {
  const cells = origin.line.map((program) => elites[program] ?? byCell.get(data.ancestors[program - elites.length].cell));
  const places = cells.filter((each) => each?.middle).map(({ middle: [x, y] }) => `${1000 * x} ${1000 * (1 - y)}`);
  return places.length > 1 ? `M${places.join("L")}` : "";
}

// The visible elites beside this one, from left to right.
function rowOf(elite) {
  const boxes = new Map(visible.map((each) => [each, buttons.get(each.cell).getBoundingClientRect()]));
  const middle = (boxes.get(elite).top + boxes.get(elite).bottom) / 2;
  return visible.filter((each) => boxes.get(each).top < middle && boxes.get(each).bottom > middle)
    .sort((one, two) => boxes.get(one).left - boxes.get(two).left);
}

function neighbour(key) {
  const from = byCell.get(state.cell), place = visible.indexOf(from);
  if (key === "Home" || key === "End") return rowOf(from).at(key === "Home" ? 0 : -1);
  const across = { ArrowRight: 1, ArrowLeft: -1 }[key] ?? 0, up = { ArrowUp: 1, ArrowDown: -1 }[key] ?? 0;
  if (state.view !== "map") {
    const columns = getComputedStyle($("stage")).gridTemplateColumns.split(" ").length;
    return visible[place + across - up * columns];
  }
  let best, least = Infinity;
  for (const elite of visible) {
    const x = (elite.middle[0] - from.middle[0]) * data.map.columns, y = (elite.middle[1] - from.middle[1]) * data.map.rows;
    const along = across * x + up * y, aside = Math.abs(across ? y : x);
    if (along > 1e-6 && aside <= 1.5 * along && along + 3 * aside < least) [best, least] = [elite, along + 3 * aside];
  }
  return best;
}

// ---- the table

const COLUMNS = [
  ["origin", (elite) => maker(elite.origin.operator)],
  ["expression", (elite) => (elite.expression.length > LONG ? `${elite.expression.slice(0, LONG)} …` : elite.expression)],
];

function table() {
  const heads = ["cell", "rank", ...data.quantities].map((name, i) => {
    const key = i === 0 ? "cell" : Math.max(0, i - 2);
    if (i === 1) return el("th", { scope: "col" }, el("span", { text: name }));
    const isSorted = String(state.sort) === String(key);
    const sort = el("button", { type: "button", text: name + (isSorted ? (state.descending ? " ↓" : " ↑") : ""), "data-sort": key });
    return el("th", { scope: "col", "aria-sort": isSorted ? (state.descending ? "descending" : "ascending") : "none" }, sort);
  });
  heads.push(...COLUMNS.map(([name]) => el("th", { scope: "col", class: "text", text: name })));
  const rows = visible.map((elite) => el("tr", { "data-cell": elite.cell },
    el("th", { scope: "row" }, el("a", { href: link(elite.cell), text: elite.cell })),
    el("td", { text: elite.row + 1 }),
    ...elite.values.map((value) => el("td", { text: number(value) })),
    ...COLUMNS.map(([, text]) => el("td", { class: "text" }, text(elite)))));
  const focused = document.activeElement?.dataset?.sort;
  $("tabular").replaceChildren(el("table", {},
    el("caption", { text: `${count(visible.length)} elites; a cell's name opens it` }),
    el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows)));
  if (focused !== undefined) $("tabular").querySelector(`[data-sort="${focused}"]`)?.focus();
}

function sortBy(key) {
  const sort = key === "cell" ? key : Number(key);
  state.descending = sort === state.sort ? !state.descending : sort !== "cell";
  state.sort = sort;
  $("sort").value = key;
  apply();
}

// ---- scores beside the cell that is looked at

// at: a box beside which the scores are shown; without one the elite is marked alone.
function tip(elite, at) {
  mark(elite);
  $("tip").hidden = !(elite && at);
  if ($("tip").hidden) return;
  const scores = data.quantities.map((name, i) => [name, elite.values[i]]);
  const rows = scores.map(([name, value]) => el("div", {}, el("span", { text: name }), el("span", { text: number(value) })));
  $("tip").replaceChildren(el("strong", { text: `Cell ${elite.cell} · rank ${elite.row + 1}` }), ...rows);
  const box = $("tip").getBoundingClientRect(), gap = 10;
  const right = at.right + gap + box.width < innerWidth;
  const x = right ? at.right + gap : at.left - gap - box.width;
  $("tip").style.left = `${Math.max(gap, Math.min(x, innerWidth - box.width - gap))}px`;
  $("tip").style.top = `${Math.max(gap, Math.min(at.top, innerHeight - box.height - gap))}px`;
}

// The elite that an element stands for, and the box for its scores.
function looked(element) {
  const found = element.closest?.("[data-cell]");
  return [found && byCell.get(found.dataset.cell), found?.matches(".cell, .point") ? found.getBoundingClientRect() : null];
}

// ---- the address: its fragment has the cells that the panel shows and, after a question mark, all else that is not as usual

const cellsOf = (hash) => hash.slice(1).split("?")[0].split("~").filter(Boolean).map(decodeURIComponent).filter((cell) => byCell.has(cell)).slice(0, 2);
const link = (...cells) => `#${cells.map((cell) => encodeURIComponent(cell).replaceAll("%2C", ",")).join("~")}`;

function address() {
  const kept = IN_ADDRESS.filter((name) => state[name] !== usual[name]).map((name) => [name, state[name]]);
  const all = link(...state.shown) + (kept.length ? `?${new URLSearchParams(kept)}` : "");
  return all === "#" ? location.pathname + location.search : all;
}

function remember() {
  clearTimeout(writing);
  if (usual) writing = setTimeout(() => history.replaceState(null, "", address()), WRITE_MS);
}

function follow() {
  const given = new URLSearchParams(location.hash.split("?")[1]);
  const among = (name, values) => values.find((value) => String(value) === given.get(name)) ?? usual[name];
  const listed = (name) => [...$(name).options].map((each) => each.value);
  Object.assign(state, {
    view: among("view", [...(data.map ? ["map"] : []), "gallery", "table"]), face: among("face", listed("face")), level: among("level", listed("level")),
    sort: among("sort", ["cell", ...data.quantities.keys()]), descending: among("descending", [true, false]),
    shown: cellsOf(location.hash),
  });
  for (const name of ["face", "level", "sort"]) $(name).value = state[name];
  drawCells();
  present();
}

// ---- the panel

function open(cell) {
  const cells = state.held && state.held !== cell ? [state.held, cell] : [cell];
  hold(null);
  show(...cells);
}

function show(...cells) {
  const isNew = state.shown.join("~") !== cells.join("~");
  state.shown = cells;
  clearTimeout(writing);
  if (isNew) history.pushState(null, "", address());
  present();
}

function present() {
  const cells = state.shown;
  tip(null);
  if (!cells.length) {
    if ($("panel").open) $("panel").close();
    return;
  }
  state.cell = cells.at(-1);
  rove();
  cards();
  mark();
  $("panel-state").textContent = "";
  $("panel").scrollTop = 0;
  if (!$("panel").open) matchMedia(PHONE).matches ? $("panel").showModal() : $("panel").show();
  $("cards").querySelector("article:last-child h2").focus({ preventScroll: true });
}

function cards() {
  const chosen = state.shown.map((cell) => byCell.get(cell));
  $("panel").classList.toggle("two", chosen.length > 1);
  $("cards").replaceChildren(...chosen.map(card));
  $("comparison").replaceChildren(...(chosen.length > 1 ? [comparison(...chosen)] : []));
}

function comparison(one, two) {
  const rows = data.quantities.map((name, i) => {
    const [a, b] = [one.values[i], two.values[i]];
    const difference = a === null || b === null ? "" : (b > a ? "+" : "") + number(b - a);
    return el("tr", {}, el("th", { scope: "row", text: name }), ...[number(a), number(b), difference].map((text) => el("td", { text })));
  });
  const heads = ["", `cell ${one.cell}`, `cell ${two.cell}`, "difference"].map((text) => text ? el("th", { scope: "col", text }) : el("td"));
  return el("table", {}, el("caption", { text: "Scores of both" }), el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows));
}

function card(elite) {
  const id = `elite-${elite.row}`;
  const title = el("h2", { id, tabindex: -1, text: `Cell ${elite.cell}` });
  const place = el("p", { class: "rank", text: rank(elite) });
  return el("article", { "aria-labelledby": id, "data-hash": elite.hash }, title, place, ...looks(elite), actions(elite), scores(elite),
    ...texts(elite, "Expression", elite.expression),
    ...section(`Program: ${elite.program.length} words, ${elite.num_instructions} live instructions`,
      el("pre", { class: "program", tabindex: 0, text: programText(elite), "aria-label": "Program" }),
      el("p", { class: "note" }, "Score it again with ", el("code", { text: "evo eval RUN/config.yaml FILE" }),
        "; as Python, C or CUDA: ", el("code", { text: `evo export RUN --cell ${elite.cell} --format python` }))),
    ...section("Origin", el("div", { class: "origin" }, ...origin(elite))),
    ...texts(elite, "PTX", elite.ptx.trim()));
}

const texts = (elite, name, text) => section(name, text ? el("pre", { tabindex: 0, text, "aria-label": name })
  : el("p", { class: "note" }, "See ", el("code", { text: `evo show RUN --cell ${elite.cell}` })));

const rank = (elite) => `Rank ${elite.row + 1} of ${count(data.counts.elites)} by objective` + (elite.front === null ? "" : `; on the front${elite.front && `: ${elite.front}`}`);
const section = (title, ...content) => [el("h3", { text: title }), ...content];

function looks(elite) {
  if (data.pictures) {
    const film = data.pictures.films[elite.row], still = data.pictures.stills[elite.row];
    if (!still) return [el("div", { class: "picture small", role: "img", "aria-label": `Picture of cell ${elite.cell}` }, face(elite.row, "pictures"))];
    const image = el("img", { alt: `Picture of cell ${elite.cell}` }), small = webp(still);
    let shown = small; // until a server has drawn a larger one
    const toggle = el("button", { type: "button", class: "play" });
    const turn = () => {
      image.src = film && state.playing ? webp(film) : shown;
      image.classList.toggle("coarse", image.src === small && elite.row >= data.pictures.large);
      toggle.textContent = state.playing ? "Pause" : "Play";
      toggle.setAttribute("aria-label", `${toggle.textContent} the animation of cell ${elite.cell}`);
    };
    toggle.addEventListener("click", () => {
      state.playing = !state.playing;
      turn();
    });
    turn();
    const save = saving(elite, "picture", small, "webp");
    if (data.live) larger(elite).then((url) => { save.href = shown = url; turn(); }, () => {}); // else the small one stays
    return [el("div", { class: "picture" }, image, ...(film ? [toggle] : [])), save];
  }
  if (data.fits) {
    const figure = el("figure", { class: "chart" }, plot(elite.row), el("figcaption", {}, ...legend()));
    return [figure, saving(elite, "picture", drawing(figure), "svg")];
  }
  const swatch = el("div", { class: "swatch" });
  swatch.style.background = color(elite.values[0]);
  return [swatch];
}

// A picture as large as the panel, from the server.
async function larger(elite) {
  const asked = new URLSearchParams(location.search);
  asked.set("hash", elite.hash);
  asked.set("size", Math.min(2048, Math.ceil(512 * devicePixelRatio)));
  const answer = await fetch(`picture?${asked}`);
  if (!answer.ok) throw new Error(answer.statusText);
  return URL.createObjectURL(await answer.blob());
}

// What a picture of curves shows: its lines, and the ranges of both axes.
function legend() {
  const { input, output, scaled, x, y } = data.fits;
  const across = input ? `${input} from ${number(x[0])} to ${number(x[1])}` : `${count(x[1])} points, sorted by target`;
  return [el("span", { class: "line", text: output + (scaled ? ", scaled" : "") }), el("span", { class: "line target", text: "target" }),
    el("span", { text: across }), el("span", { text: `${output} from ${number(y[0])} to ${number(y[1])}` })];
}

// A figure of curves as a file of its own, with the colours that it has here and its legend below.
function drawing(figure) {
  const style = getComputedStyle(document.documentElement), colors = ["--target", "--accent"].map((name) => style.getPropertyValue(name));
  const curves = figure.querySelector("svg").cloneNode(true);
  filled(curves, { x: 10, y: 10, width: 780, height: 400 }, []);
  [...curves.children].forEach((each, i) => filled(each, { fill: "none", stroke: colors[i], "stroke-width": 2, "vector-effect": "non-scaling-stroke" }, []));
  const texts = [...figure.querySelectorAll("span")].map((each, i) => svg("text", { x: 10 + 390 * (i % 2), y: 435 + 22 * (i >> 1), fill: [colors[1], colors[0]][i] ?? "gray", text: each.textContent }));
  const whole = svg("svg", { width: 800, height: 470, "font-family": "sans-serif", "font-size": 14 }, curves, ...texts);
  return `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(whole))}`;
}

const saving = (elite, what, href, suffix) => el("a", { href, download: `cell_${elite.cell.replace(/\D+/g, "_")}.${suffix}`, text: `Save ${what}` });

// Lines as long as `evo show` has them.
const programText = (elite) => elite.program.map((i) => data.tokens[i]).join(" ").replace(/(.{1,100})( |$)/g, "$1\n").trim();

function actions(elite) {
  const text = `# cell ${elite.cell}, objective ${elite.values[0]}\n${programText(elite)}\n`;
  const copy = el("button", { type: "button", text: "Copy program", onclick: () => copied(text) });
  const exports = Object.entries(elite.exports ?? {}).map(([name, text]) => el("button", { type: "button", text: `Copy as ${name}`, onclick: () => copied(text) }));
  const paired = state.shown.length > 1;
  const compare = paired
    ? el("button", { type: "button", text: "Take away", "aria-label": `Take cell ${elite.cell} away`, onclick: () => show(...state.shown.filter((cell) => cell !== elite.cell)) })
    : el("button", { type: "button", text: "Compare with …", onclick: () => { hold(elite.cell); $("panel").close(); } });
  return el("div", { class: "actions" }, copy, ...exports, compare, saving(elite, "program", `data:text/plain,${encodeURIComponent(text)}`, "txt"));
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // such as where the page may not use the clipboard
    const area = el("textarea", { "aria-hidden": "true" });
    area.value = text;
    $("panel").append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  $("panel-state").textContent = "Copied.";
}

function scores(elite) {
  const rows = data.quantities.map((name, i) => {
    const [low, high] = extent(i), value = elite.values[i];
    const bar = el("span");
    bar.style.setProperty("--share", `${value === null || high === low ? 0 : (100 * (value - low)) / (high - low)}%`);
    return el("tr", {}, el("th", { scope: "row", text: name }), el("td", { class: "meter", "aria-hidden": "true" }, bar), el("td", { text: number(value) }));
  });
  const facts = elite.facts.map(([name, text]) => el("tr", {}, el("th", { scope: "row", text: name }), el("td"), el("td", { text })));
  const note = facts.length && data.note ? [el("p", { class: "note", text: data.note })] : [];
  return el("div", {}, el("table", {}, el("tbody", {}, ...rows, ...facts)), ...note);
}

// An operator's name, which tells what it does where a pointer rests on it.
function maker(operator) {
  return data.operators[operator] ? el("abbr", { title: data.operators[operator], text: operator }) : operator;
}

function origin(elite) {
  const { operator, generation, slot, parents } = elite.origin;
  const cells = parents.flatMap(([cell, row], i) => [i ? " and " : " from ",
    row === null ? `cell ${cell} (replaced since)` : el("a", { href: link(cell), "data-cell": cell, text: `cell ${cell}` })]);
  const story = el("p", {}, `Made in generation ${generation} (slot ${slot}) by `, maker(operator), ...cells, ".");
  const hash = el("p", { class: "note" }, "Hash ", el("code", { text: elite.hash }));
  return [story, ...(elite.origin.line.length > 1 ? [descent(elite)] : []), el("p", { class: "note", text: ancestry(elite) }), hash];
}

function ancestry({ origin: { line, length, end } }) {
  const programs = length === 1 ? "this program alone" : count(length) + " programs" + (line.length < length ? `, ${line.length} of them shown` : "");
  const since = {
    complete: "back to one without parents",
    forgotten: "its beginning is forgotten",
    archive: data.lineage_note ?? "older ones have been replaced, and nothing is recorded of them",
  };
  return `Line of first parents: ${programs}; ${since[end]}.`;
}

// The programs of the line that are shown, oldest first. Those that are still elites lead to their cells.
function descent(elite) {
  const items = elite.origin.line.map((program) => {
    const there = elites[program], past = data.ancestors[program - elites.length];
    const { cell, operator, generation, objective } = past ?? { ...there.origin, cell: there.cell, objective: there.values[0] };
    const leads = there && there !== elite, shown = state.face === "lineages" ? usual.face : state.face;
    const picture = leads
      ? el("a", { class: "cell", href: link(cell), "data-cell": cell, "aria-label": `Ancestor in cell ${cell}` }, face(program, shown))
      : el("span", { class: "cell" }, face(program, shown));
    placed(picture, null, false);
    const made = maker(operator.replace(/^none \((.*)\)$/, "$1"));
    return el("li", {}, picture, ...[`gen. ${count(generation)}`, made, number(objective)].map((text) => el("span", {}, text)));
  });
  return el("ol", { class: "descent", "aria-label": "Ancestors, the oldest first" }, ...items);
}

function hold(cell) {
  state.held = cell;
  $("comparing").hidden = cell === null;
  if (cell !== null) $("comparing").firstElementChild.textContent = `Choose an elite to compare with cell ${cell}.`;
}

// ---- renewal, where a server has the page

async function poll() {
  if (!state.paused) {
    try {
      const answer = await fetch(location.pathname + location.search, { cache: "no-store", headers: { "If-None-Match": `"${data.live}"` } });
      if (answer.status === 200) {
        const next = new DOMParser().parseFromString(await answer.text(), "text/html");
        renew(await unpacked(next.getElementById("data").textContent));
      }
      else if (answer.status !== 304) throw new Error(answer.statusText);
      tell(`generation ${count(data.counts.generations)}`);
    } catch {
      tell("no answer from evo watch; trying again");
    }
  }
  setTimeout(poll, POLL_MS);
}

function tell(text) {
  if ($("live-state").textContent !== text) $("live-state").textContent = text;
}

function renew(found) {
  const [left, top] = [$("scroll").scrollLeft, scrollY];
  const within = document.activeElement && $("panel").contains(document.activeElement) ? document.activeElement.id : null;
  tip(null);
  load(found);
  state.shown = state.shown.filter((cell) => byCell.has(cell));
  if ($("panel").open) {
    const kept = [...$("cards").children].map((each) => each.dataset.hash).join();
    if (kept !== state.shown.map((cell) => byCell.get(cell).hash).join()) {
      const depth = $("panel").scrollTop;
      cards();
      $("panel").scrollTop = depth;
      if (within !== null) $("cards").querySelector("h2")?.focus({ preventScroll: true });
    } else {
      refresh();
    }
  }
  $("scroll").scrollLeft = left;
  scrollTo(scrollX, top);
}

// What the panel says of other elites, where its own are the same as before.
function refresh() {
  const led = document.activeElement?.closest(".origin") ? document.activeElement.getAttribute("href") : null;
  [...$("cards").children].forEach((article, i) => {
    const elite = byCell.get(state.shown[i]);
    article.querySelector(".rank").textContent = rank(elite);
    article.querySelector(".origin").replaceChildren(...origin(elite));
  });
  const back = led && [...$("cards").querySelectorAll(".origin a")].find((each) => each.getAttribute("href") === led);
  if (led) (back ?? $("cards").querySelector("h2")).focus({ preventScroll: true });
}

// ---- events

function listen() {
  for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => { state.view = button.dataset.view; apply(); });
  $("face").addEventListener("change", () => { state.face = $("face").value; drawCells(); });
  $("level").addEventListener("change", () => { state.level = $("level").value; apply(); });
  $("sort").addEventListener("change", () => { state.sort = $("sort").value === "cell" ? "cell" : Number($("sort").value); apply(); });
  $("direction").addEventListener("click", () => { state.descending = !state.descending; apply(); });
  $("size").addEventListener("input", apply);
  $("theme").addEventListener("change", () => { document.documentElement.dataset.theme = $("theme").value; });
  $("search").addEventListener("input", apply);
  $("reset").addEventListener("click", () => { $("search").value = ""; state.ranges.clear(); ranges(); apply(); });
  $("tabular").addEventListener("click", (event) => {
    const key = event.target.closest("[data-sort]")?.dataset.sort;
    if (key !== undefined) sortBy(key);
  });
  $("comparing").querySelector("button").addEventListener("click", () => { hold(null); buttons.get(state.cell)?.focus(); });

  const stage = $("stage");
  stage.addEventListener("click", (event) => {
    const button = event.target.closest(".cell");
    if (button) open(button.dataset.cell);
  });
  stage.addEventListener("focusin", (event) => {
    state.cell = event.target.dataset.cell;
    rove();
  });
  stage.addEventListener("keydown", (event) => {
    if (!/^(Arrow(Left|Right|Up|Down)|Home|End)$/.test(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const next = neighbour(event.key);
    if (next) buttons.get(next.cell).focus();
  });

  addEventListener("pointerover", (event) => { if (event.pointerType !== "touch") tip(...looked(event.target)); });
  document.documentElement.addEventListener("pointerleave", () => tip(null));
  addEventListener("focusin", (event) => { if (event.target.matches(":focus-visible")) tip(...looked(event.target)); });
  addEventListener("focusout", () => tip(null));
  addEventListener("click", (event) => {
    const led = event.target.closest?.('a[href^="#"]');
    if (!led || event.ctrlKey || event.metaKey || event.shiftKey) return;  // those open the elite in a new tab
    event.preventDefault();
    show(...cellsOf(led.hash));
  });
  addEventListener("scroll", () => tip(null), { passive: true });
  addEventListener("hashchange", follow);
  addEventListener("beforeprint", () => { // on paper, a modal panel would cover the page
    if (!$("panel").matches(":modal")) return;
    $("panel").close();
    $("panel").show();
  });
  $("close").addEventListener("click", () => $("panel").close());
  $("panel").addEventListener("close", () => {
    if ($("panel").open) return;  // the event comes late: other cells are shown by now
    state.shown = [];
    mark();
    remember();
    const back = state.view === "table" ? [...$("tabular").querySelectorAll("tbody a")].find((each) => each.textContent === state.cell) : buttons.get(state.cell);
    back?.focus({ preventScroll: true });
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    if (!$("tip").hidden) tip(null);
    else if (!$("panel").matches(":modal") && $("panel").open) $("panel").close();
    else if (state.held !== null) hold(null);
  });
  if (data.live) {
    $("live").hidden = false;
    tell(`generation ${count(data.counts.generations)}`);
    $("live-toggle").addEventListener("click", () => {
      state.paused = !state.paused;
      $("live-toggle").setAttribute("aria-pressed", state.paused);
    });
    setTimeout(poll, POLL_MS);
  }
}

// Cells are as large as the window allows, but never too small to touch; those of a very large archive only to be seen.
function fit(found) {
  if (!found.map) return 96;
  const room = $("explore").clientWidth - 72;
  return Math.max(found.elites.length > MANY ? 8 : 24, Math.min(Math.floor(room / found.map.columns), Math.floor((innerHeight - 230) / found.map.rows), 120));
}

async function begin() {
  const given = await unpacked($("data").textContent);
  $("size").value = fit(given);
  $("filters").open = !matchMedia(NARROW).matches;
  load(given);
  usual = Object.fromEntries(IN_ADDRESS.map((name) => [name, state[name]]));
  listen();
  if (location.hash) follow();
  return Promise.all(sheets);
}

const begun = begin();
