// Draws the folder graph as an SVG: importers above, what they import below.
import type { Edge } from "./layout.ts";

const BOX = { width: 112, height: 34 };
const GAP = { x: 26, y: 62 };
const MARGIN = 24;

export function drawLayout(edges: readonly Edge[]): string {
  const levels = levelsOf(edges);
  const widest = Math.max(...levels.map((level) => level.length));
  const width = MARGIN * 2 + widest * (BOX.width + GAP.x) - GAP.x;
  const height = MARGIN * 2 + levels.length * (BOX.height + GAP.y) - GAP.y;
  const places = placesOf(levels, width);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">',
    '<path d="M0 0L8 4L0 8z" fill="#7a8699"/></marker></defs>',
    ...edges.map((edge) => drawEdge(edge, places)),
    ...[...places].map(([name, place]) => drawBox(name, place)),
    "</svg>",
    "",
  ].join("\n");
}

interface Place {
  readonly x: number;
  readonly y: number;
}

/** Every folder stands above all folders that it imports. */
function levelsOf(edges: readonly Edge[]): readonly (readonly string[])[] {
  const names = [...new Set(edges.flatMap(({ from, to }) => [from, to]))].toSorted();
  const depths = new Map<string, number>();
  const depthOf = (name: string, trail: readonly string[]): number => {
    const known = depths.get(name);
    if (known !== undefined) return known;
    const below = edges.filter(({ from, to }) => from === name && !trail.includes(to));
    const depth = Math.max(-1, ...below.map(({ to }) => depthOf(to, [...trail, name]))) + 1;
    depths.set(name, depth);
    return depth;
  };
  for (const name of names) depthOf(name, []);
  const deepest = Math.max(0, ...depths.values());
  return Array.from({ length: deepest + 1 }, (_, level) =>
    names.filter((name) => depths.get(name) === deepest - level),
  );
}

function placesOf(levels: readonly (readonly string[])[], width: number): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>();
  for (const [row, level] of levels.entries()) {
    const used = level.length * (BOX.width + GAP.x) - GAP.x;
    for (const [column, name] of level.entries()) {
      const x = (width - used) / 2 + column * (BOX.width + GAP.x);
      places.set(name, { x, y: MARGIN + row * (BOX.height + GAP.y) });
    }
  }
  return places;
}

function drawEdge({ from, to }: Edge, places: ReadonlyMap<string, Place>): string {
  const [start, end] = [places.get(from), places.get(to)];
  if (start === undefined || end === undefined) return "";
  const [x1, y1] = [start.x + BOX.width / 2, start.y + BOX.height];
  const [x2, y2] = [end.x + BOX.width / 2, end.y];
  const bend = (y2 - y1) / 2;
  const path = `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
  return `<path d="${path}" fill="none" stroke="#7a8699" stroke-width="0.8" opacity="0.6" marker-end="url(#tip)"/>`;
}

function drawBox(name: string, { x, y }: Place): string {
  const size = `width="${BOX.width}" height="${BOX.height}" rx="5"`;
  const box = `<rect x="${x}" y="${y}" ${size} fill="#eef2f8" stroke="#3d4b63"/>`;
  const label = `<text x="${x + BOX.width / 2}" y="${y + BOX.height / 2 + 4}" text-anchor="middle">${name}</text>`;
  return `${box}${label}`;
}
