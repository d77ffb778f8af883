// Who may import whom. The diagram of the house, as a table: what is not in it is forbidden.
import { type Import, importsOf, isTest, type SourceText } from "../fixtures/repository.ts";

interface Room {
  /** Rooms it may import values and types from. */
  readonly from?: readonly string[];
  /** Rooms it may import types from, and nothing else. */
  readonly typesFrom?: readonly string[];
  /** What it may import from outside: `node:` for the platform, and packages by name. */
  readonly outside?: readonly string[];
}

/** A room is a folder of `src`, a store, or one of the two files at its root. */
export const ROOMS: Readonly<Record<string, Room>> = {
  core: {},
  ports: { typesFrom: ["core", "spawner"] },
  // What can be asked of Belay, in this process or over a network.
  control: { typesFrom: ["core", "ports", "spawner"] },
  // The port for processes has a file of its own: what a tool sees of them, and what the engine asks of a spawner.
  spawner: { typesFrom: ["core"] },
  wire: { from: ["core"] },
  store: { from: ["core", "ports", "wire"], outside: ["node:"] },
  "store/memory": { from: ["core", "ports", "wire", "store"], outside: ["node:"] },
  "store/sqlite": { from: ["core", "ports", "wire", "store"], outside: ["node:"] },
  "store/postgres": { from: ["core", "ports", "wire", "store"], outside: ["node:", "pg"] },
  engine: { from: ["core", "ports", "spawner"], typesFrom: ["control"], outside: ["node:"] },
  process: { from: ["core", "ports", "spawner"], outside: ["node:"] },
  agent: { from: ["core", "ports", "spawner"], outside: ["node:", "@ai-sdk/provider"] },
  // A scripted model and its tools, for whoever has no key yet. Never part of the public surface.
  demo: { from: ["core", "ports", "spawner", "agent"], outside: ["node:", "@ai-sdk/provider"] },
  // The engine as a person writes against it: sessions, runs, handles. Like cli, it wires concrete parts.
  library: {
    from: [
      ...["engine", "core", "ports", "spawner", "process", "store/memory", "store/sqlite", "server", "acp", "foreign"],
    ],
    typesFrom: ["control"],
    outside: ["node:"],
  },
  testing: { from: ["core", "ports", "spawner", "engine"], outside: ["node:", "@ai-sdk/provider"] },
  // The routes and what they take and answer, as schemas: what is described is what is checked.
  api: { from: ["core"], typesFrom: ["control", "ports", "spawner"], outside: ["zod"] },
  // From configuration to parts: which model, which tools, who is asked.
  setup: {
    from: ["core", "ports", "spawner", "agent", "demo", "engine", "foreign"],
    typesFrom: ["library"],
    outside: ["node:", "zod", "@ai-sdk/openai", "@ai-sdk/anthropic", "@ai-sdk/openai-compatible", "@ai-sdk/provider"],
  },
  // Logs, the audit trail, metrics and traces: hears of everything, decides nothing.
  observe: { from: ["core", "ports", "wire"], outside: ["node:", "@opentelemetry/api"] },
  server: {
    from: ["api", "core", "wire", "acp"],
    typesFrom: ["control", "ports", "spawner", "observe"],
    outside: ["node:", "zod", "ws", "@agentclientprotocol/sdk"],
  },
  client: { from: ["core", "wire"], typesFrom: ["control", "ports", "spawner"], outside: ["node:"] },
  // What several ways in have in common, and the library does not need.
  calls: { from: ["core"], typesFrom: ["control"], outside: [] },
  acp: {
    from: ["core", "calls"],
    typesFrom: ["control", "ports"],
    outside: ["node:", "@agentclientprotocol/sdk"],
  },
  // An agent of somebody else's, which speaks the protocol, as an agent of ours.
  foreign: {
    from: ["core", "wire", "agent"],
    typesFrom: ["ports", "spawner"],
    outside: ["node:", "@agentclientprotocol/sdk"],
  },
  bridge: { from: ["core", "wire", "calls"], typesFrom: ["control", "ports", "spawner"], outside: ["node:"] },
  cli: {
    from: [
      ...["core", "ports", "spawner", "control", "wire", "engine", "library", "process", "agent", "demo", "setup"],
      ...["store", "store/memory", "store/sqlite", "store/postgres", "server", "client", "acp", "bridge"],
      ...["api", "observe", "foreign", "calls"],
    ],
    outside: ["node:", "commander", "@agentclientprotocol/sdk"],
  },
  // The public surface. Stores have their own, so that nobody loads a driver that is not used.
  index: {
    from: ["core", "ports", "spawner", "control", "engine", "library", "process", "agent", "wire", "client", "server"],
  },
};

/** The room of a file of `src`. */
export function roomOf(path: string): string | undefined {
  const [top, first, second, ...rest] = path.split("/");
  if (top !== "src" || first === undefined) return undefined;
  if (second === undefined) return first.replace(/\.ts$/, "");
  return first === "store" && rest.length > 0 ? `store/${second}` : first;
}

/** What is wrong with the imports of one file. */
export function importFindings(file: SourceText): readonly string[] {
  return importsOf(file).flatMap((one) => {
    const problem = shapeProblem(file.path, one) ?? directionProblem(file.path, one);
    return problem === undefined ? [] : [`${file.path} imports ${one.specifier}: ${problem}`];
  });
}

function shapeProblem(path: string, { specifier, target }: Import): string | undefined {
  if (target === undefined) return undefined;
  if (!/\.(ts|js|json|sql)$/.test(specifier)) return "a relative import carries its extension";
  // From outside, the public surface is the right door.
  if (path.startsWith("src/") && /(^|\/)index\.ts$/.test(target))
    return "no barrels: import from the file that defines the thing";
  return undefined;
}

function directionProblem(path: string, { specifier, target, typesOnly }: Import): string | undefined {
  const own = roomOf(path);
  if (own === undefined || isTest(path)) return undefined;
  const room = ROOMS[own];
  if (room === undefined) return `${own} is not a room of the house`;
  if (target === undefined) return outsideProblem(own, room, specifier);
  const other = roomOf(target);
  if (other === undefined) return "src imports nothing from outside of src";
  if (isTest(target)) return "nothing but tests imports tests";
  if (other === own || room.from?.includes(other)) return undefined;
  if (room.typesFrom?.includes(other)) return typesOnly ? undefined : `${own} may import only types from ${other}`;
  return `${own} may not import ${other}`;
}

function outsideProblem(own: string, room: Room, specifier: string): string | undefined {
  const platform = specifier.startsWith("node:");
  const name = platform
    ? "node:"
    : specifier
        .split("/")
        .slice(0, specifier.startsWith("@") ? 2 : 1)
        .join("/");
  return room.outside?.includes(name) ? undefined : `${own} may not import ${name}`;
}

/** Circles of files that import each other, each told once. Types count: a circle of words is a circle too. */
export function cycles(files: readonly SourceText[]): readonly string[] {
  const graph = new Map(files.map((file) => [file.path, importsOf(file).flatMap(({ target }) => target ?? [])]));
  const found = new Set<string>();
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start !== -1) {
      found.add(canonical(trail.slice(start)).join(" -> "));
      return;
    }
    if (done.has(path)) return;
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return [...found];
}

function canonical(circle: readonly string[]): readonly string[] {
  const first = circle.indexOf(circle.toSorted()[0] ?? "");
  const turned = [...circle.slice(first), ...circle.slice(0, first)];
  return [...turned, ...turned.slice(0, 1)];
}

/** An `index.ts` is a public surface, and there are four. */
export const isBarrel = (path: string): boolean => /(^|\/)index\.ts$/.test(path) && !SURFACES.has(path);

const SURFACES: ReadonlySet<string> = new Set([
  ...["src/index.ts", "src/agent/index.ts", "src/client/index.ts", "src/testing/index.ts"],
]);
