// The tables in the documentation that are read off the code: limits, events, codes, routes, metrics.
// `node test/rules/doc-tables.ts` writes them; its test fails if they are not current.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { z } from "zod";
import * as agentLimits from "../../src/agent/limits.ts";
import * as fileLimits from "../../src/agent/tools/files/file-limits.ts";
import { EXIT_CODE } from "../../src/cli/shared/exit-code.ts";
import { exitMeanings } from "../../src/cli/shared/exit-help.ts";
import * as clientLimits from "../../src/client/limits.ts";
import { ADVICE, type ControlCode } from "../../src/core/errors.ts";
import * as coreLimits from "../../src/core/limits.ts";
import type { Event } from "../../src/core/model/event.ts";
import * as serverLimits from "../../src/http/limits.ts";
import type { Route } from "../../src/http/routes/route.ts";
import { ROUTE_NAMES, routeOf } from "../../src/http/routes/routes.ts";
import { STATUS } from "../../src/http/routes/status-code.ts";
import { ATTACKS, type Attack, ENFORCEMENT } from "../../src/process/containment/attacks.ts";
import { MECHANISMS } from "../../src/process/containment/mechanisms.ts";
import * as bridgeLimits from "../../src/protocols/bridge/limits.ts";
import * as sqliteLimits from "../../src/store/sqlite/limits.ts";
import { INSTRUMENTS } from "../../src/telemetry/instruments.ts";
import * as observeLimits from "../../src/telemetry/limits.ts";
import { nodes, parse, ROOT, sources } from "../fixtures/repository.ts";
import { shutdownTable } from "../shutdown/situations.ts";
import { ROOMS, roomOf } from "./import-rules.ts";

interface Table {
  /** The page it stands on, between `<!-- begin NAME -->` and `<!-- end NAME -->`. */
  readonly page: string;
  readonly name: string;
  readonly make: () => string;
}

export const TABLES: readonly Table[] = [
  { page: "docs/operating.md", name: "limits", make: () => limits("src/core/limits.ts", coreLimits) },
  { page: "docs/models.md", name: "agent limits", make: () => limits("src/agent/limits.ts", agentLimits) },
  { page: "docs/operating.md", name: "sqlite limits", make: () => limits("src/store/sqlite/limits.ts", sqliteLimits) },
  { page: "docs/operating.md", name: "shutdown", make: () => table(...shutdownTable()) },
  { page: "docs/events.md", name: "events", make: events },
  { page: "docs/events.md", name: "codes", make: codes },
  {
    page: "docs/models.md",
    name: "file limits",
    make: () => limits("src/agent/tools/files/file-limits.ts", fileLimits),
  },
  { page: "ARCHITECTURE.md", name: "imports", make: imports },
  { page: "docs/server.md", name: "routes", make: routes },
  { page: "docs/server.md", name: "status codes", make: statusCodes },
  { page: "docs/server.md", name: "metrics", make: metrics },
  { page: "docs/server.md", name: "server limits", make: () => limits("src/http/limits.ts", serverLimits) },
  { page: "docs/server.md", name: "observe limits", make: () => limits("src/telemetry/limits.ts", observeLimits) },
  { page: "docs/client.md", name: "client limits", make: () => limits("src/client/limits.ts", clientLimits) },
  { page: "docs/bridge.md", name: "bridge limits", make: () => limits("src/protocols/bridge/limits.ts", bridgeLimits) },
  { page: "SECURITY.md", name: "attacks", make: attacks },
  { page: "docs/cli.md", name: "exit codes", make: () => table(["code", "means"], exitMeanings()) },
];

/** The page with its tables as they should be. */
export function current(page: string, text: string): string {
  return TABLES.filter((table) => table.page === page).reduce(withTable, text);
}

function withTable(text: string, { name, make }: Table): string {
  const [begin, end] = [`<!-- begin ${name} -->\n`, `<!-- end ${name} -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from === -1 || to === -1) throw new Error(`There is no place for the table of ${name}.`);
  return text.slice(0, from) + begin + make() + text.slice(to);
}

/** What a command can do to the Belay that runs it, by mechanism. */
function attacks(): string {
  const rows = (Object.keys(ATTACKS) as readonly Attack[]).map((attack) => [
    ATTACKS[attack],
    ...MECHANISMS.map((mechanism) => ENFORCEMENT[attack][mechanism]),
  ]);
  return table(["a command that tries to", ...MECHANISMS], rows);
}

/** What each event tells. A record, so that the compiler notices one that is missing here. */
const MEANING: Readonly<Record<Event["type"], string>> = {
  "session.created": "The session exists. Always the first event of a log.",
  "session.cancel_requested": "Somebody cancelled the session; `covers` names every run it reaches.",
  "session.closed": "The session accepts nothing any more. Its log is kept.",
  "session.mode_set": "How its agent goes about its work from here on, in a word of the agent. `by`: who wanted that.",
  "session.compacted":
    "From here on the model is given this summary instead of what was said before. The log keeps all of it.",
  "inbox.added": "Something the model is to hear at its next turn, and no person has said: a reminder, or a result.",
  "request.answered": "A request with an idempotency key was answered like this; asked again, it gets the same answer.",
  "run.accepted": "A prompt became a run. From here on it reaches exactly one outcome.",
  "run.edited": "A queued run has another prompt.",
  "run.moved": "A queued run has another place; 0 is next.",
  "run.steered": "A queued run now waits to be taken into the live run.",
  "run.requeued": "A steer that found no live run any more is a queued run.",
  "run.taken": "A steer was taken into a turn of the live run. Its own outcome follows at once.",
  "run.started": "A queued run is live. At most one per session is.",
  "run.cancel_requested": "The live run was cancelled. Nothing new of it begins.",
  "run.parked": "Set down at shutdown, to be taken up at the next start.",
  "run.recovered": "Taken up again, after a shutdown that parked it or a worker that vanished.",
  "run.settled": "How the run ended. Once per run, and the last that is heard of it.",
  "turn.requested": "The agent is asked for a turn.",
  "inbox.taken": "All that was in the inbox, oldest first, is said to this turn. Each item is taken once.",
  "turn.extended": "The next piece of the text of a turn that is going on, and what it has cost so far.",
  "turn.settled": "How the turn ended, with its whole text. `next` says whether another one follows.",
  "question.asked": "A turn or a call asks people something, and waits. An approval is bound to the bytes of its call.",
  "question.settled":
    "How the question ended: answered, expired, or withdrawn with what it belonged to. Once per question.",
  "call.requested": "A turn asked for a tool call, or its end did. It begins after this is recorded, never before.",
  "call.cancel_requested": "This one call was cancelled. Its run and its siblings go on.",
  "call.settled": "How the call ended, what it returned or had put aside, and what it is known to have changed.",
  "process.requested":
    "A process is to be started. It ends with its owner: a call, or, in the background, the session.",
  "process.started": "The process runs, as this pid, held together by this tier.",
  "process.detached": "A process that took too long to be waited for is its session's from here on.",
  "process.cancel_requested": "This one process was cancelled. Its call goes on.",
  "process.settled":
    "How the process ended, once its whole tree was gone or had escaped. `completed`: by itself, whatever its code.",
};

function events(): string {
  const fields = fieldsByType(readFileSync(join(ROOT, "src/core/model/event.ts"), "utf8"));
  const rows = Object.entries(MEANING).map(([type, meaning]) => {
    const names = (fields.get(type) ?? []).map((name) => `\`${name}\``).join(", ");
    return [`\`${type}\``, names, meaning];
  });
  return table(["event", "carries", "tells"], rows);
}

/** The fields of each event, in the order of their declaration; optional ones with a question mark. */
function fieldsByType(text: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const node of nodes(parse({ path: "event.ts", text }))) {
    if (!ts.isTypeLiteralNode(node)) continue;
    const members = node.members.filter(ts.isPropertySignature);
    const type = members.find((member) => member.name.getText() === "type")?.type?.getText();
    if (type === undefined) continue;
    const fields = members.filter((member) => member.name.getText() !== "type");
    const names = fields.map((one) => one.name.getText() + (one.questionToken === undefined ? "" : "?"));
    found.set(type.replaceAll('"', ""), names);
  }
  return found;
}

function codes(): string {
  const rows = Object.entries(ADVICE).map(([code, { retryable, hint }]) => {
    return [`\`${code}\``, retryable ? "yes" : "no", String(EXIT_CODE[code as ControlCode]), hint];
  });
  return table(["code", "worth another try", "exit code", "advice"], rows);
}

/** The folders that exist, and what each may import. */
function imports(): string {
  const built = new Set(sources().map(({ path }) => roomOf(path)));
  const names = (all: readonly string[] = []): string =>
    all
      .filter((name) => built.has(name) || !Object.hasOwn(ROOMS, name))
      .map((name) => `\`${name}\``)
      .join(", ");
  const rows = Object.entries(ROOMS)
    .filter(([name]) => built.has(name))
    .map(([name, { from, typesFrom, outside }]) => [`\`${name}\``, names(from), names(typesFrom), names(outside)]);
  return table(["folder", "imports", "types only", "from outside"], rows);
}

/** Every route, in the order in which the server has them. */
function routes(): string {
  const rows = ROUTE_NAMES.map(routeOf).map((route) => [
    `\`${route.method} ${route.path}\``,
    route.serverWide === true ? `${route.scope}, server-wide` : route.scope,
    takes(route),
    Object.keys(route.answers).join(", "),
    route.summary,
  ]);
  return table(["route", "scope", "takes", "answers", "what it does"], rows);
}

const takes = ({ query, body }: Route): string =>
  [query === undefined ? "" : `?${fieldsOf(query)}`, body === undefined ? "" : fieldsOf(body)]
    .filter((part) => part !== "")
    .join(" ");

/** The fields of an object, or of each object that there may be; optional ones with a question mark. */
function fieldsOf(schema: unknown): string {
  if (schema instanceof z.ZodUnion) return schema.options.map(fieldsOf).join(" or ");
  if (!(schema instanceof z.ZodObject)) return "";
  const names = Object.entries(schema.shape).map(([name, field]) => {
    const mark = z.safeParse(field, undefined).success ? "?" : "";
    // A field with one possible value tells one object from another.
    const value = field instanceof z.ZodLiteral ? `: ${JSON.stringify(field.value)}` : "";
    return `\`${name}${mark}${value}\``;
  });
  return names.join(", ");
}

function statusCodes(): string {
  const entries = Object.entries(STATUS).filter(([code]) => code !== "disconnected");
  const statuses = [...new Set(entries.map(([, status]) => status))].toSorted((one, other) => one - other);
  const rows = statuses.map((status) => {
    const own = entries.filter(([, one]) => one === status).map(([code]) => `\`${code}\``);
    return [String(status), own.join(", "), status === 429 || status === 503 ? "yes" : "no"];
  });
  return table(["status", "codes", "`Retry-After`"], rows);
}

/** Where the metrics are named that a server has besides those of the work. */
const SERVER_METRICS = "src/cli/shared/server/compose-server.ts";

function metrics(): string {
  const own = Object.values(INSTRUMENTS).map(({ name, kind, labels, dotted, help }) => {
    return [`\`${name}\``, kind, labels.map((label) => `\`${label}\``).join(", "), `\`${dotted}\``, help];
  });
  const source = parse({ path: SERVER_METRICS, text: readFileSync(join(ROOT, SERVER_METRICS), "utf8") });
  const others = [...nodes(source)].flatMap((node) => {
    const [name = "", help = ""] = ts.isCallExpression(node) ? textsOf(node.arguments) : textsOfFields(node);
    const kind = name.endsWith("_total") ? "counter" : "gauge";
    const labels = kind === "counter" ? "`route`, `status`" : "";
    return name.startsWith("belay_") ? [[`\`${name}\``, kind, labels, "", help]] : [];
  });
  return table(["metric", "kind", "labels", "in OpenTelemetry", "what it tells"], [...own, ...others]);
}

const textsOf = (given: readonly ts.Node[]): readonly string[] =>
  given.flatMap((one) => (ts.isStringLiteral(one) ? [one.text] : []));

function textsOfFields(node: ts.Node): readonly string[] {
  if (!ts.isObjectLiteralExpression(node)) return [];
  return textsOf(node.properties.flatMap((one) => (ts.isPropertyAssignment(one) ? [one.initializer] : [])));
}

/** Every exported number of a module, with the sentence that stands above it. */
function limits(path: string, values: Readonly<Record<string, unknown>>): string {
  const source = parse({ path, text: readFileSync(join(ROOT, path), "utf8") });
  let reason = "";
  const rows = source.statements.filter(ts.isVariableStatement).map((statement) => {
    const name = statement.declarationList.declarations[0]?.name.getText() ?? "";
    const [comment] = ts.getJSDocCommentsAndTags(statement);
    // Without a sentence of its own it shares the one before it.
    reason = typeof comment?.comment === "string" ? comment.comment.replaceAll(/\s*\n\s*/g, " ") : reason;
    return [`\`${name}\``, readable(name, Number(values[name])), reason];
  });
  return table(["limit", "value", "because"], rows);
}

function readable(name: string, value: number): string {
  if (name.endsWith("_KIB")) return readable("BYTES", value * 1024);
  if (name.includes("BYTES") || name.includes("CHARS_MAX")) return binary(value, name.includes("BYTES") ? "B" : "");
  if (/(^|_)MS(_|$)/.test(name)) return time(value);
  if (name.endsWith("_S")) return `${value} s`;
  return value.toLocaleString("en");
}

const DAY_MS = 24 * 60 * 60_000;

function time(ms: number): string {
  if (ms % DAY_MS === 0 && ms > 0) return `${ms / DAY_MS} days`;
  return ms >= 60_000 ? `${ms / 60_000} min` : `${ms.toLocaleString("en")} ms`;
}

function binary(value: number, unit: string): string {
  if (value % 2 ** 20 === 0) return `${value / 2 ** 20} Mi${unit}`;
  return value % 1024 === 0 ? `${value / 1024} Ki${unit}` : `${value.toLocaleString("en")} ${unit}`.trim();
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return `${[line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n")}\n`;
}

if (import.meta.main) {
  for (const page of new Set(TABLES.map((one) => one.page))) {
    const path = join(ROOT, page);
    writeFileSync(path, current(page, readFileSync(path, "utf8")));
    console.log(`${page} is current.`);
  }
}
