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

/** A room is a folder of `src`, a store, or `src/index.ts`. */
export const ROOMS: Readonly<Record<string, Room>> = {
  core: {},
  // What the engine needs from outside, what agents, tools and hosts are given, and what can be asked of Belay.
  ports: { typesFrom: ["core"] },
  // The real clock, random ids, the version of the package and the limit on open files.
  system: { from: ["core"], typesFrom: ["ports"], outside: ["node:"] },
  wire: { from: ["core"] },
  store: { from: ["core", "ports", "wire"], outside: ["node:"] },
  "store/contract": { from: ["core", "ports", "wire", "store"], outside: ["node:", "vitest"] },
  "store/memory": { from: ["core", "ports", "wire", "store"], outside: ["node:"] },
  "store/sqlite": { from: ["core", "ports", "system", "wire", "store"], outside: ["node:"] },
  "store/postgres": { from: ["core", "ports", "wire", "store"], outside: ["node:", "pg"] },
  engine: { from: ["core", "ports", "system"], outside: ["node:"] },
  process: { from: ["core", "ports", "system"], outside: ["node:"] },
  agent: { from: ["core", "ports", "system"], outside: ["node:", "@ai-sdk/provider"] },
  // A scripted model and its tools, to try Belay without a key. Never part of the public surface.
  demo: { from: ["core", "ports", "agent"], outside: ["node:", "@ai-sdk/provider"] },
  // The engine as a person writes against it: sessions, runs, handles. Like cli, it wires concrete parts.
  sdk: {
    from: ["core", "ports", "system", "engine", "process", "store/memory", "store/sqlite", "http"],
    outside: ["node:"],
  },
  testing: { from: ["core", "ports", "engine"], outside: ["node:", "@ai-sdk/provider"] },
  // Logs, the audit trail, metrics and traces. It decides nothing.
  telemetry: { from: ["core", "ports", "wire"], outside: ["node:", "@opentelemetry/api"] },
  // Protocols translate between the outside and the control. They decide nothing.
  protocols: {
    from: ["core", "wire", "agent", "system"],
    typesFrom: ["ports"],
    outside: ["node:", "@agentclientprotocol/sdk"],
  },
  // From configuration to parts: which model, which tools, who is asked.
  config: {
    from: ["core", "ports", "system", "agent", "demo", "engine", "protocols"],
    typesFrom: ["sdk"],
    outside: ["node:", "zod", "@ai-sdk/openai", "@ai-sdk/anthropic", "@ai-sdk/openai-compatible", "@ai-sdk/provider"],
  },
  // Routes with their schemas: what is described is what is checked.
  http: {
    from: ["core", "wire", "system", "protocols"],
    typesFrom: ["ports", "telemetry"],
    outside: ["node:", "zod", "ws", "@agentclientprotocol/sdk"],
  },
  client: { from: ["core", "wire"], typesFrom: ["ports"], outside: ["node:"] },
  cli: {
    from: [
      ...["core", "ports", "system", "wire", "engine", "sdk", "process", "agent", "demo", "config", "telemetry"],
      ...["store", "store/memory", "store/sqlite", "store/postgres", "http", "client", "protocols"],
    ],
    outside: ["node:", "commander", "@agentclientprotocol/sdk"],
  },
  // The public surface. Stores have their own, so that no driver is loaded that is not used.
  index: { from: ["core", "ports", "engine", "sdk", "process", "agent", "wire", "client", "http"] },
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

/** An `index.ts` is a public surface: one for each subpath that package.json exports. */
export const isBarrel = (path: string): boolean => /(^|\/)index\.ts$/.test(path) && !SURFACES.has(path);

const SURFACES: ReadonlySet<string> = new Set([
  ...["src/index.ts", "src/agent/index.ts", "src/client/index.ts", "src/testing/index.ts", "src/http/index.ts"],
  ...["src/protocols/acp/index.ts", "src/config/index.ts", "src/store/sqlite/index.ts", "src/store/memory/index.ts"],
]);
