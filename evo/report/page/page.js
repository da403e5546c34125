"use strict";
// The page of a run. Owns its state, which outlives a renewal of the data, and all that is drawn from both. Whatever a task or a
// file names is set as text or as an attribute, never parsed as markup.

const SVG = "http://www.w3.org/2000/svg";
const POLL_MS = 2000;
const PHONE = "(max-width: 48rem)"; // as in page.css: the panel takes the whole window
const MANY = 1000; // elites
const LONG = 100; // characters of an expression in the table
const GAP = 65535; // in curves: not finite
const TOP = 65534; // in curves: the upper edge

const $ = (id) => document.getElementById(id);
const state = {
  view: null, face: null, level: "", // of the third measure, "": the best of all
  sort: 0, descending: true,
  cell: null, // that the arrow keys start from
  shown: null, // the cell of the panel
  playing: false,
};
let data, elites, byCell, visible, buttons, target, sheet;

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
const link = (cell) => `#${encodeURIComponent(cell).replaceAll("%2C", ",")}`;

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
  sheet = data.pictures && createImageBitmap(new Blob([bytes(data.pictures.atlas)], { type: "image/webp" }));
  target = data.fits && curve(data.fits.target);
  if (!byCell.has(state.cell)) state.cell = elites.length ? elites[0].cell : null;
  if (!data.map && (state.view === null || state.view === "map")) state.view = "gallery";
  state.view ??= "map";
  header();
  menus();
  axis($("horizontal"), data.map?.axes[0], "left");
  axis($("vertical"), data.map?.axes[1], "bottom");
  $("graphs").replaceChildren(...data.graphs.map(graph));
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

function plot(row) {
  const paths = [svg("path", { class: "target", d: target }), svg("path", { d: curve(data.fits.curves[row]) })];
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
  const [across, up] = ["horizontal", "vertical"].map((name) => el("div", { class: name, "aria-hidden": "true" }));
  return el("li", {}, el("h3", { text: title }), el("div", { class: "graph" }, axis(up, y, "bottom"), area, axis(across, x, "left")));
}

const fraction = (value, [low, high]) => ((value ?? NaN) - low) / (high - low);
const spot = (elite, { x, y, measure }) => [fraction(elite.values[1 + measure], x.ends), fraction(elite.values[0], y.ends)];
const drawn = (spots) => spots.filter((at) => at.every((each) => each >= 0 && each <= 1)).map(([across, up]) => `M${1000 * across} ${1000 * (1 - up)}h0`).join("");
const atEdge = (at) => at.map((each) => Math.min(Math.max(0, each), 1)); // for an elite beyond the front's ends

function extent(quantity) {
  const values = elites.map((elite) => elite.values[quantity]).filter((value) => value !== null);
  return values.length ? [Math.min(...values), Math.max(...values)] : [0, 0];
}

function order(one, two) {
  const sign = state.descending ? -1 : 1;
  if (state.sort === "cell") return sign * one.cell.localeCompare(two.cell, "en", { numeric: true });
  const [a, b] = [one.values[state.sort], two.values[state.sort]];
  if (a === b) return one.row - two.row;
  return a === null ? 1 : b === null ? -1 : sign * (a - b);
}

// ---- cells

function face(row, shown = state.face) {
  if (shown === "curves") return plot(row);
  if (shown === "pictures") {
    const { columns, side } = data.pictures, tile = el("canvas", { class: "tile", width: side, height: side });
    // A copy: to draw a part of an image that large costs a browser as much as all of it.
    sheet.then((whole) => tile.getContext("2d").drawImage(whole, -side * (row % columns), -side * Math.floor(row / columns)));
    return tile;
  }
  const tile = el("span", { class: "tile" });
  tile.style.background = color(elites[row].values[0]);
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

// One of the elites that share a place.
const onMap = () => elites.filter((elite) => (state.level === "" ? elite.on_map : elite.level === Number(state.level)));

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
  visible = (isMap ? onMap() : [...elites]).sort(order);
  scale();
  stage.className = $("figure").className = isMap ? "map" : "gallery";
  stage.setAttribute("aria-label", isMap ? "Map of elites" : "Gallery of elites");
  for (const id of ["vertical", "horizontal"]) $(id).hidden = !isMap || (id === "vertical" && data.map.axes.length < 2);
  $("figure").hidden = $("hint").hidden = isTable;
  $("tabular").hidden = !isTable;
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", button.dataset.view === state.view);
  $("direction").textContent = state.descending ? "Descending" : "Ascending";
  if (isTable) table();
  else stageCells(isMap);
  mark();
  if (hadFocus) buttons.get(state.cell)?.focus({ preventScroll: true });
}

// Cells are as large as the window allows, but never too small to touch; those of a very large archive only to be seen.
function fit() {
  const room = $("explore").clientWidth - 72, least = elites.length > MANY ? 8 : 24;
  const side = state.view === "map" ? Math.max(least, Math.min(Math.floor(room / data.map.columns), Math.floor((innerHeight - 230) / data.map.rows), 120)) : 96;
  $("figure").style.setProperty("--cell", `${side}px`);
}

function stageCells(isMap) {
  const size = $("figure").style; // of the stage and of the axis below it
  if (isMap) {
    size.setProperty("--columns", data.map.columns);
    size.setProperty("--rows", data.map.rows);
  }
  fit();
  const shown = visible.map((elite) => {
    const button = buttons.get(elite.cell);
    placed(button, elite, isMap);
    return button;
  });
  const unit = { viewBox: "0 0 1000 1000", preserveAspectRatio: "none", "aria-hidden": "true" };
  const ring = svg("svg", { ...unit, class: "ring" }, ...["halo", "chosen", ""].map((name) => svg("path", { class: name })));
  $("stage").replaceChildren(...(isMap ? [svg("svg", unit, svg("path", { class: "empty", d: data.map.outlines })), ...shown, ring] : shown));
  rove();
}

function rove() {
  if (!visible.some((elite) => elite.cell === state.cell) && visible.length) state.cell = visible[0].cell;
  for (const [cell, button] of buttons) button.tabIndex = cell === state.cell ? 0 : -1;
}

// Marks the elite of the panel, and the one that is looked at, wherever they are: in all views and graphs.
function mark(elite) {
  for (const each of document.querySelectorAll("[data-cell].on")) each.classList.remove("on");
  for (const each of document.querySelectorAll("[data-cell][aria-current]")) each.removeAttribute("aria-current");
  const same = ({ cell }) => document.querySelectorAll(`[data-cell="${CSS.escape(cell)}"]`);
  const chosen = state.shown === null ? [] : [byCell.get(state.shown)], looked = elite ? [elite] : [];
  for (const each of chosen.flatMap((one) => [...same(one)])) each.setAttribute("aria-current", "true");
  for (const each of looked.flatMap((one) => [...same(one)])) each.classList.add("on");
  const outlines = (some) => (data.map ? some.map(path).join("") : ""), marked = [...chosen, ...looked];
  document.querySelectorAll("#stage .ring path").forEach((each, i) => each.setAttribute("d", outlines([marked, chosen, looked][i])));
  data.graphs.forEach((each, i) => {
    const upright = ({ born }) => `M${1000 * fraction(born + 1, each.x.ends)} 0V1000`;
    const d = each.points ? drawn(marked.map((one) => atEdge(spot(one, each)))) : marked.map(upright).join("");
    $("graphs").children[i].querySelector(".marks").setAttribute("d", d);
  });
}

function neighbour(key) {
  const from = byCell.get(state.cell), place = visible.indexOf(from);
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

// ---- the panel; the address has its cell after #

function open(cell) {
  if (state.shown !== cell) history.pushState(null, "", link(cell));
  state.shown = cell;
  present();
}

function follow() {
  const cell = decodeURIComponent(location.hash.slice(1));
  state.shown = byCell.has(cell) ? cell : null;
  present();
}

function present() {
  tip(null);
  if (state.shown === null) {
    if ($("panel").open) $("panel").close();
    return;
  }
  state.cell = state.shown;
  rove();
  $("card").replaceChildren(...card(byCell.get(state.shown)));
  $("panel-state").textContent = "";
  $("panel").scrollTop = 0;
  if (!$("panel").open) matchMedia(PHONE).matches ? $("panel").showModal() : $("panel").show();
  fit(); // in the room beside the panel
  $("card").querySelector("h2").focus({ preventScroll: true });
}

function card(elite) {
  const rank = `Rank ${elite.row + 1} of ${count(data.counts.elites)} by objective` + (elite.front === null ? "" : `; on the front${elite.front && `: ${elite.front}`}`);
  const source = programText(elite), copied = `# cell ${elite.cell}, objective ${elite.values[0]}\n${source}\n`;
  const cell = el("code", { text: `--cell ${elite.cell}` });
  return [el("h2", { tabindex: -1, text: `Cell ${elite.cell}` }), el("p", { class: "rank", text: rank }), ...looks(elite),
    el("div", { class: "actions" }, el("button", { type: "button", text: "Copy program", onclick: () => copy(copied) })), scores(elite),
    ...texts(elite, "Expression", elite.expression),
    ...section(`Program: ${elite.program.length} words, ${elite.num_instructions} live instructions`,
      el("pre", { class: "program", tabindex: 0, text: source, "aria-label": "Program" }),
      el("p", { class: "note" }, "Score it again with ", el("code", { text: "evo eval RUN/config.yaml FILE" }),
        "; evo show, simplify, film and export take it by ", cell)),
    ...section("Origin", el("p", {}, `Made in generation ${elite.origin.generation} (slot ${elite.origin.slot}) by `, maker(elite.origin.operator),
      elite.origin.parents.length ? ` from cells ${elite.origin.parents.join(" and ")}.` : "."), el("p", { class: "note" }, "Hash ", el("code", { text: elite.hash }))),
    ...texts(elite, "PTX", elite.ptx.trim())];
}

const texts = (elite, name, text) => section(name, text ? el("pre", { tabindex: 0, text, "aria-label": name })
  : el("p", { class: "note" }, "See ", el("code", { text: `evo show RUN --cell ${elite.cell}` })));

const section = (title, ...content) => [el("h3", { text: title }), ...content];

function looks(elite) {
  if (data.pictures) {
    const film = data.pictures.films[elite.row], still = data.pictures.stills[elite.row];
    if (!still) return [el("div", { class: "picture small", role: "img", "aria-label": `Picture of cell ${elite.cell}` }, face(elite.row, "pictures"))];
    const image = el("img", { alt: `Picture of cell ${elite.cell}` });
    const toggle = el("button", { type: "button", class: "play" });
    const turn = () => {
      image.src = webp(film && state.playing ? film : still);
      image.classList.toggle("coarse", elite.row >= data.pictures.large);
      toggle.textContent = state.playing ? "Pause" : "Play";
      toggle.setAttribute("aria-label", `${toggle.textContent} the animation of cell ${elite.cell}`);
    };
    toggle.addEventListener("click", () => {
      state.playing = !state.playing;
      turn();
    });
    turn();
    return [el("div", { class: "picture" }, image, ...(film ? [toggle] : []))];
  }
  if (data.fits) return [el("figure", { class: "chart" }, plot(elite.row), el("figcaption", {}, ...legend()))];
  const swatch = el("div", { class: "swatch" });
  swatch.style.background = color(elite.values[0]);
  return [swatch];
}

// What a picture of curves shows: its lines, and the ranges of both axes.
function legend() {
  const { input, output, scaled, x, y } = data.fits;
  const across = input ? `${input} from ${number(x[0])} to ${number(x[1])}` : `${count(x[1])} points, sorted by target`;
  return [el("span", { class: "line", text: output + (scaled ? ", scaled" : "") }), el("span", { class: "line target", text: "target" }),
    el("span", { text: across }), el("span", { text: `${output} from ${number(y[0])} to ${number(y[1])}` })];
}

// Lines as long as `evo show` has them.
const programText = (elite) => elite.program.map((i) => data.tokens[i]).join(" ").replace(/(.{1,100})( |$)/g, "$1\n").trim();

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    $("panel-state").textContent = "Copied.";
  } catch { // such as where the page may not use the clipboard
    $("panel-state").textContent = "The browser refuses; select the program and copy it.";
  }
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

// ---- renewal, where a server has the page

async function poll() {
  try {
    const answer = await fetch(location.pathname, { cache: "no-store", headers: { "If-None-Match": `"${data.live}"` } });
    if (answer.status === 200) {
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      renew(await unpacked(next.getElementById("data").textContent));
    }
    else if (answer.status !== 304) throw new Error(answer.statusText);
    tell(`generation ${count(data.counts.generations)}`);
  } catch {
    tell("no answer from evo watch; trying again");
  }
  setTimeout(poll, POLL_MS);
}

function tell(text) {
  if ($("live").textContent !== text) $("live").textContent = text;
}

// The panel keeps its elite as long as that is one.
function renew(found) {
  const before = byCell.get(state.shown)?.hash, [left, top] = [$("scroll").scrollLeft, scrollY];
  tip(null);
  if (!found.elites.some((elite) => elite.cell === state.shown)) state.shown = null;
  load(found);
  if (byCell.get(state.shown)?.hash !== before) present();
  $("scroll").scrollLeft = left;
  scrollTo(scrollX, top);
}

// ---- events

function listen() {
  for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => { state.view = button.dataset.view; apply(); });
  $("face").addEventListener("change", () => { state.face = $("face").value; drawCells(); });
  $("level").addEventListener("change", () => { state.level = $("level").value; apply(); });
  $("sort").addEventListener("change", () => { state.sort = $("sort").value === "cell" ? "cell" : Number($("sort").value); apply(); });
  $("direction").addEventListener("click", () => { state.descending = !state.descending; apply(); });
  $("tabular").addEventListener("click", (event) => {
    const key = event.target.closest("[data-sort]")?.dataset.sort;
    if (key !== undefined) sortBy(key);
  });

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
    if (!/^Arrow(Left|Right|Up|Down)$/.test(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const next = neighbour(event.key);
    if (next) buttons.get(next.cell).focus();
  });

  addEventListener("pointerover", (event) => { if (event.pointerType !== "touch") tip(...looked(event.target)); });
  document.documentElement.addEventListener("pointerleave", () => tip(null));
  addEventListener("focusin", (event) => { if (event.target.matches(":focus-visible")) tip(...looked(event.target)); });
  addEventListener("focusout", () => tip(null));
  addEventListener("scroll", () => tip(null), { passive: true });
  addEventListener("hashchange", follow);
  $("close").addEventListener("click", () => $("panel").close());
  $("panel").addEventListener("close", () => {
    if ($("panel").open) return; // the event comes late: another cell is shown by now
    const cell = state.shown ?? state.cell;
    state.shown = null;
    if (location.hash) history.replaceState(null, "", location.pathname + location.search);
    mark();
    fit();
    const back = state.view === "table" ? [...$("tabular").querySelectorAll("tbody a")].find((each) => each.textContent === cell) : buttons.get(cell);
    back?.focus({ preventScroll: true });
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    if (!$("tip").hidden) tip(null);
    else if (!$("panel").matches(":modal") && $("panel").open) $("panel").close();
  });
  if (data.live) {
    $("live").hidden = false;
    tell(`generation ${count(data.counts.generations)}`);
    setTimeout(poll, POLL_MS);
  }
}

async function begin() {
  load(await unpacked($("data").textContent));
  listen();
  if (location.hash) follow();
  return sheet;
}

const begun = begin();
