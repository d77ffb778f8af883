// Samples over time as a picture: one small chart for each measure, from zero, so that flat looks flat.
import { type Figure, field } from "./figure.ts";
import type { Suite } from "./published-suite.ts";

const [WIDTH, HEIGHT, LEFT, TOP, GAP] = [720, 90, 60, 40, 46];

/** An SVG with the machine, the commit and the seed in it. Undefined: there is nothing to draw. */
export function plotOf({ title, plot }: Suite, figure: Figure): string | undefined {
  const samples = plot === undefined ? undefined : figure.result[plot.key];
  if (plot === undefined || !Array.isArray(samples) || samples.length === 0) return undefined;
  const times = samples.map((one) => Number(field(one, plot.at)));
  const charts = Object.entries(plot.shown).map(([key, word], index) => {
    const values = samples.map((one) => Number(field(one, key)));
    return chart(word, { times, values, top: TOP + index * (HEIGHT + GAP) });
  });
  const { machine, commit, startedAt } = figure;
  const made = `commit ${commit}, seed ${figure.result.seed}, ${startedAt.slice(0, 10)}`;
  const about = `${machine.cores} cores (${machine.cpu}), ${made}`;
  const height = TOP + charts.length * (HEIGHT + GAP) + 20;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${LEFT + WIDTH + 20} ${height}" font-family="sans-serif">`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    text(LEFT, 20, `${title}, over ${Math.round((times.at(-1) ?? 0) / 60)} minutes`, 15),
    ...charts.flat(),
    text(LEFT, height - 8, about, 11),
    "</svg>",
    "",
  ].join("\n");
}

interface Line {
  readonly times: readonly number[];
  readonly values: readonly number[];
  readonly top: number;
}

function chart(word: string, { times, values, top }: Line): readonly string[] {
  const most = Math.max(...values, Number.EPSILON) * 1.1;
  const end = times.at(-1) ?? 1;
  const points = values.map((value, index) => {
    const [x, y] = [LEFT + ((times[index] ?? 0) / end) * WIDTH, top + HEIGHT - (value / most) * HEIGHT];
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  return [
    text(LEFT, top - 6, word, 12),
    text(8, top + 10, most.toPrecision(3), 11),
    text(8, top + HEIGHT, "0", 11),
    `<path d="M${LEFT} ${top}V${top + HEIGHT}H${LEFT + WIDTH}" fill="none" stroke="#999"/>`,
    `<polyline points="${points.join(" ")}" fill="none" stroke="#1668b8" stroke-width="1.5"/>`,
  ];
}

const text = (x: number, y: number, words: string, size: number): string =>
  `<text x="${x}" y="${y}" font-size="${size}" fill="#222">${escaped(words)}</text>`;

const escaped = (words: string): string => words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
