/** The figures of a run, by Plotly. Names of arms stand beside them as text of the page, not within. */
import { count, name } from "./forms.js";

const ROW = 26; // pixels: the height of a row, as in report.css
const CUT = 22;
const TOP = 26;
const BOTTOM = 30;
const CONFIG = { displayModeBar: false, responsive: false, scrollZoom: false, doubleClick: false };

/**
 * A row of the figure; `y` is its middle. A row that stands for many arms has `left_out` and `span`.
 *
 * @typedef {object} Row
 * @property {string} name
 * @property {number | null} mean
 * @property {number | null} error
 * @property {number} pulls
 * @property {boolean} is_above
 * @property {string} mean_words
 * @property {string} width_words
 * @property {number} [left_out]
 * @property {[number, number] | null} [span]
 * @property {number} y
 */

/** A colour of the page. @param {string} key */
const colour = (key) => getComputedStyle(document.body).getPropertyValue(`--${key}`).trim();

/** Text for Plotly, which reads some HTML. @param {string} text */
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function base() {
  const ink = colour("soft");
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink },
    hoverlabel: {
      bgcolor: colour("paper"),
      bordercolor: colour("line"),
      font: { color: colour("ink") },
      align: "left",
    },
    showlegend: false,
    dragmode: false,
    hovermode: "closest",
  };
}

function axis() {
  const line = colour("line");
  return { gridcolor: line, linecolor: line, zeroline: false, fixedrange: true, automargin: false };
}

/** @param {any} facts */
export function drawArms(facts) {
  const place = /** @type {HTMLElement} */ (document.getElementById("arms-plot"));
  if (!place.offsetParent) return;
  const rows = placed(facts.arms.rows);
  const isNarrow = place.clientWidth < 420;
  const height = TOP + rows.length * ROW + (hasCut(rows) ? CUT : 0) + BOTTOM;
  const layout = {
    ...base(),
    width: place.clientWidth,
    height,
    margin: { l: 6, r: 8, t: TOP, b: BOTTOM },
    yaxis: { range: [height - TOP - BOTTOM, 0], visible: false, fixedrange: true },
    xaxis: { ...axis(), domain: [0, 0.66], range: padded(facts.arms.range), nticks: isNarrow ? 4 : 6 },
    xaxis2: { ...axis(), domain: [0.74, 1], rangemode: "tozero", nticks: 3, tickformat: "~s" },
    shapes: cutShapes(facts, rows),
    annotations: headings(rows),
    barmode: "overlay",
  };
  const traces = [...markTraces(facts, rows), spans(rows), pullBars(facts, rows)];
  window.Plotly.react(place, traces, layout, CONFIG);
}

/** Rows with the place of their middle. @param {Omit<Row, "y">[]} rows @returns {Row[]} */
function placed(rows) {
  const shift = hasCut(rows) ? CUT : 0;
  return rows.map((row, place) => ({ ...row, y: place * ROW + ROW / 2 + (row.is_above ? 0 : shift) }));
}

/** @param {{is_above: boolean}[]} rows */
const hasCut = (rows) => rows.some((row) => row.is_above) && rows.some((row) => !row.is_above);

/** @param {[number, number]} range */
function padded([low, high]) {
  const room = 0.03 * (high - low || 1);
  return [low - room, high + room];
}

/** @param {any} facts @param {Row[]} rows */
function markTraces(facts, rows) {
  const sure = facts.arms.is_finished;
  return [true, false].map((isAbove) => {
    const some = rows.filter((row) => row.is_above === isAbove && row.mean !== null && !row.left_out);
    const widths = some.map((row) => 2 * (row.error ?? 0));
    const ink = colour(isAbove ? "in" : "out");
    const isFilled = isAbove && sure;
    return {
      type: "scatter",
      mode: "markers",
      x: some.map((row) => row.mean),
      y: some.map((row) => row.y),
      error_x: { type: "data", array: widths, color: ink, thickness: 2.5, width: 0 },
      marker: {
        symbol: isFilled ? "circle" : "square",
        size: 9,
        color: isFilled ? ink : colour("panel"),
        line: { color: ink, width: 1.5 },
      },
      text: some.map((row) => plain(name(row.name, 40))),
      customdata: some.map((row) => [row.mean_words, row.width_words, count(row.pulls)]),
      hovertemplate:
        "%{text}<br>mean %{customdata[0]} ± %{customdata[1]}<br>%{customdata[2]} pulls<extra></extra>",
    };
  });
}

/** The ranges of the means of arms that are not shown one by one. @param {Row[]} rows */
function spans(rows) {
  const some = rows.filter((row) => row.left_out && row.span);
  return {
    type: "bar",
    orientation: "h",
    base: some.map((row) => row.span?.[0]),
    x: some.map((row) => (row.span ? row.span[1] - row.span[0] : 0)),
    y: some.map((row) => row.y),
    width: some.map(() => 10),
    marker: { color: colour("dull") },
    text: some.map((row) => row.name),
    textposition: "none",
    hovertemplate: "%{text}<extra></extra>",
  };
}

/** @param {any} facts @param {Row[]} rows */
function pullBars(facts, rows) {
  const some = rows.filter((row) => !row.left_out && row.pulls);
  return {
    type: "bar",
    orientation: "h",
    xaxis: "x2",
    x: some.map((row) => row.pulls),
    y: some.map((row) => row.y),
    width: some.map(() => 12),
    marker: { color: some.map((row) => colour(row.is_above && facts.arms.is_finished ? "in" : "out")) },
    text: some.map((row) => plain(name(row.name, 40))),
    textposition: "none",
    hovertemplate: "%{text}<br>%{x:,} pulls<extra></extra>",
  };
}

/** The cut, and on it how long epsilon is. @param {any} facts @param {Row[]} rows */
function cutShapes(facts, rows) {
  if (!hasCut(rows)) return [];
  const above = rows.filter((row) => row.is_above);
  const y = above.length * ROW + CUT / 2;
  const line = { type: "line", yref: "y", y0: y, y1: y };
  const color = colour("cut");
  const shapes = [{ ...line, xref: "paper", x0: 0, x1: 1, line: { color, width: 1.5, dash: "dash" } }];
  const last = above[above.length - 1].mean;
  if (last !== null && last !== undefined) {
    const end = facts.arms.goal === "minimise" ? last + facts.arms.epsilon : last - facts.arms.epsilon;
    shapes.push({ ...line, xref: "x", x0: last, x1: end, line: { color, width: 5, dash: "solid" } });
  }
  return shapes;
}

/** @param {Row[]} rows */
function headings(rows) {
  const hasErrors = rows.some((row) => row.error !== null && row.error !== undefined);
  const words = hasErrors ? "mean ± 2 SE" : "mean";
  const common = { yref: "paper", y: 1, yanchor: "bottom", xref: "paper", xanchor: "left", showarrow: false };
  const font = { color: colour("ink"), size: 12 };
  return [
    { ...common, x: 0, text: words, font },
    { ...common, x: 0.74, text: "pulls", font },
  ];
}

/** @param {any} facts */
export function drawRounds(facts) {
  const place = /** @type {HTMLElement} */ (document.getElementById("rounds-plot"));
  /** @type {{round: number, arms: number, pulls: number}[]} */
  const rounds = facts.rounds;
  const end = rounds[rounds.length - 1];
  const ends = end ? [...rounds, { ...end, round: end.round + 1 }] : [];
  const trace = {
    type: "scatter",
    mode: "lines",
    line: { shape: "hv", color: colour("in"), width: 1.5 },
    fill: "tozeroy",
    fillcolor: colour("tint"),
    x: ends.map((one) => one.round),
    y: ends.map((one) => one.arms),
    customdata: ends.map((one) => count(one.pulls)),
    hovertemplate: "round %{x}<br>%{y:,} arms<br>%{customdata} pulls<extra></extra>",
  };
  const [first, last] = end ? [rounds[0].round, end.round + 1] : [0, 1];
  const layout = {
    ...base(),
    width: place.clientWidth,
    height: 200,
    margin: { l: 48, r: 8, t: 8, b: 40 },
    hovermode: "x",
    xaxis: {
      ...axis(),
      range: [first, last],
      tickformat: ",d",
      title: { text: "round", standoff: 6 },
      ...(last - first <= 6 ? { dtick: 1 } : { nticks: 6 }),
    },
    yaxis: { ...axis(), rangemode: "tozero", nticks: 5, tickformat: ",d" },
  };
  window.Plotly.react(place, [trace], layout, CONFIG);
}
