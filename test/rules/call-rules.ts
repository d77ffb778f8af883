// What reaches out of the program (time, chance, processes, files), and the few places that may.
import ts from "typescript";
import { isTest, lineOf, nodes, parse, type SourceText } from "../fixtures/repository.ts";

/** What is reached for. */
export type Reach = "time" | "timers" | "chance" | "processes" | "files" | "threads" | "this process" | "the log";

interface Permit {
  readonly reach: Reach;
  /** A folder with its slash, or a file: that one may be moved within its top folder. */
  readonly in: string;
  readonly because: string;
}

/** Everything not named here is forbidden to everything in `src` and `sim`, tests excepted. */
export const PERMITS: readonly Permit[] = [
  { reach: "time", in: "src/core/retry-after.ts", because: "it reads the date of a header, and not the clock" },
  { reach: "time", in: "src/system/system-clock.ts", because: "it is the clock" },
  { reach: "timers", in: "src/system/system-clock.ts", because: "it is the clock" },
  { reach: "chance", in: "src/system/random-ids.ts", because: "ids must not be guessed, and digests are made here" },
  { reach: "the log", in: "src/engine/log/commit.ts", because: "it is the only writer" },
  { reach: "the log", in: "src/engine/log/bounded-store.ts", because: "it passes the writer's batches on" },
  {
    reach: "the log",
    in: "src/testing/faulty-store.ts",
    because: "it stands before a store and hands on what it is given",
  },
  {
    reach: "the log",
    in: "src/cli/shared/offline-store.ts",
    because: "it stands before a store and hands on what it is given",
  },
  { reach: "the log", in: "sim/sim-store.ts", because: "it stands before a store and hands on what it is given" },
  { reach: "timers", in: "src/testing/manual-clock.ts", because: "it lets the event loop turn, and measures nothing" },
  { reach: "chance", in: "src/testing/sequential-ids.ts", because: "digests are no chance; its ids are counted" },
  { reach: "files", in: "src/store/sqlite/", because: "a database is a file" },
  { reach: "threads", in: "src/store/sqlite/", because: "a commit must not block the event loop" },
  { reach: "time", in: "src/store/sqlite/", because: "leases are compared between processes of one machine" },
  { reach: "timers", in: "src/store/sqlite/", because: "the database thread has no clock but the platform's" },
  { reach: "this process", in: "src/store/sqlite/", because: "whoever holds the file open is named by its pid" },
  {
    reach: "threads",
    in: "src/agent/tools/untrusted.ts",
    because: "code that does not listen can only be ended from outside",
  },
  { reach: "threads", in: "src/agent/tools/untrusted-thread.ts", because: "it is the other end of such a thread" },
  { reach: "threads", in: "src/engine/loop-watch.ts", because: "a blocked event loop is seen only from outside" },
  { reach: "threads", in: "src/engine/loop-watch-thread.ts", because: "it is the other end of such a thread" },
  {
    reach: "files",
    in: "src/engine/loop-watch-thread.ts",
    because: "standard error, while nothing else can write to it",
  },
  { reach: "time", in: "src/engine/loop-watch-thread.ts", because: "the thread has no clock but the platform's" },
  { reach: "processes", in: "src/process/", because: "it starts and stops them" },
  { reach: "files", in: "src/process/", because: "output is kept on disk, and death is verified in /proc" },
  { reach: "this process", in: "src/process/", because: "children inherit from it, and are signalled by it" },
  { reach: "chance", in: "src/process/", because: "a tree is marked so that nobody else's carries its mark" },
  { reach: "threads", in: "src/process/spawner.ts", because: "it refuses to start anything from a worker" },
  { reach: "threads", in: "src/process/tree/scan-thread.ts", because: "reading an environment can block for seconds" },
  { reach: "threads", in: "src/process/tree/scan-worker.ts", because: "it is the other end of such a thread" },
  ...["file-path.ts", "file-search.ts", "file-walk.ts", "file-write.ts"].map(
    (file): Permit => ({
      ...{ reach: "files", in: `src/agent/${file}` },
      because: "the tools for files read and write the workspace",
    }),
  ),
  { reach: "files", in: "src/config/config-file.ts", because: "a configuration and a key are files" },
  { reach: "files", in: "src/config/config-content.ts", because: "a configuration and the code it names are files" },
  { reach: "chance", in: "src/config/config-content.ts", because: "it makes a digest, which is no chance" },
  { reach: "this process", in: "src/config/config-file.ts", because: "whose file it is, is asked of its own user" },
  { reach: "files", in: "src/telemetry/audit/audit-folder.ts", because: "the audit trail is kept in files" },
  { reach: "files", in: "src/telemetry/audit/audit-page.ts", because: "the audit trail is kept in files" },
  { reach: "this process", in: "src/telemetry/line-sink.ts", because: "the log goes to standard error" },
  ...["private-directory.ts", "token-file.ts", "listener.ts", "listener-socket.ts"].map(
    (file): Permit => ({
      ...{ reach: "files", in: `src/http/${file}` },
      because: "tokens, certificates and sockets are files",
    }),
  ),
  ...["data-dir.ts", "data-lock.ts", "announcement.ts", "directory-service.ts"].map(
    (file): Permit => ({ reach: "files", in: `src/sdk/${file}`, because: "a data directory is files" }),
  ),
  ...["data-dir.ts", "announcement.ts", "directory-service.ts"].map(
    (file): Permit => ({
      ...{ reach: "this process", in: `src/sdk/${file}` },
      because: "a directory is served by one process, and its files are removed when that exits",
    }),
  ),
  { reach: "chance", in: "src/http/auth/token.ts", because: "a token must not be guessed" },
  { reach: "chance", in: "src/http/auth/tokens.ts", because: "it compares digests, in constant time" },
  { reach: "chance", in: "src/http/transport/listener.ts", because: "it compares a proxy's secret, in constant time" },
  { reach: "chance", in: "src/http/transport/request-id.ts", because: "requests of two servers are told apart" },
  { reach: "this process", in: "src/http/auth/private-directory.ts", because: "whose directory it is, its user says" },
  { reach: "files", in: "src/sdk/directories.ts", because: "a session's directory is looked at before it counts" },
  {
    reach: "files",
    in: "src/protocols/acp/agent/real-path.ts",
    because: "a directory has many names, and one of them is compared",
  },
  {
    reach: "time",
    in: "src/protocols/acp/agent/session-list.ts",
    because: "it writes a time of the log as a date, and asks for none",
  },
  {
    reach: "timers",
    in: "src/protocols/acp/agent/loop-turn.ts",
    because: "it lets the event loop turn, and measures nothing",
  },
  { reach: "time", in: "src/client/web-clock.ts", because: "a browser has no other clock" },
  { reach: "timers", in: "src/client/web-clock.ts", because: "a browser has no other clock" },
  { reach: "chance", in: "src/client/random.ts", because: "keys must not repeat, and pauses must differ" },
  {
    reach: "files",
    in: "src/sdk/resources.ts",
    because: "open descriptors are counted where the kernel lists them",
  },
  { reach: "time", in: "src/sdk/resources.ts", because: "the delay of the event loop is measured by the runtime" },
  { reach: "this process", in: "src/sdk/resources.ts", because: "its memory is what is reported" },
  { reach: "this process", in: "src/system/runtime.ts", because: "it says which runtime this is" },
  { reach: "files", in: "src/system/worker-file.ts", because: "a thread is started from a file" },
  { reach: "files", in: "src/system/open-files.ts", because: "the system tells how many files may be open" },
  { reach: "files", in: "src/sdk/open-spawner.ts", because: "what an earlier life left is found by its directory" },
  { reach: "files", in: "src/sdk/hidden-files.ts", because: "the names of a store are taken before a command starts" },
  { reach: "this process", in: "src/sdk/signals.ts", because: "it hears the signals that end a program" },
  { reach: "this process", in: "src/cli/", because: "arguments, streams and exit codes" },
  { reach: "files", in: "src/cli/", because: "people name files on the command line" },
  { reach: "timers", in: "src/cli/", because: "the demo takes its time, so that it can be read" },
  { reach: "files", in: "src/demo/demo-folder.ts", because: "the demo's tools really read and write" },
  { reach: "this process", in: "src/sdk/signals.ts", because: "signals are sent to a process" },
  { reach: "this process", in: "sim/main.ts", because: "arguments and exit codes; the simulation itself has none" },
  { reach: "this process", in: "sim/worker.ts", because: "it hears its errand from who started it" },
  { reach: "time", in: "sim/main.ts", because: "it tells how fast it was, and decides nothing by it" },
  { reach: "this process", in: "sim/rejections.ts", because: "only the process hears of rejections nobody heeds" },
  { reach: "processes", in: "sim/tasks.ts", because: "each known mistake needs modules of its own" },
  { reach: "timers", in: "sim/tasks.ts", because: "what goes round in circles is ended from outside" },
  { reach: "time", in: "sim/hunt.ts", because: "it tells a slow thread from one that has stopped" },
];

const MODULES: Readonly<Record<string, Reach>> = {
  "node:perf_hooks": "time",
  "node:timers": "timers",
  "node:timers/promises": "timers",
  "node:crypto": "chance",
  "node:child_process": "processes",
  "node:cluster": "processes",
  "node:fs": "files",
  "node:fs/promises": "files",
  "node:worker_threads": "threads",
  "node:process": "this process",
};

const GLOBALS: Readonly<Record<string, Reach>> = {
  Date: "time",
  performance: "time",
  setTimeout: "timers",
  setInterval: "timers",
  setImmediate: "timers",
  crypto: "chance",
  process: "this process",
};

/** What this file reaches for without a permit. */
export function callFindings(file: SourceText): readonly string[] {
  if (!/^(src|sim)\//.test(file.path) || isTest(file.path)) return [];
  const permitted = new Set(PERMITS.filter((one) => covers(one.in, file.path)).map((one) => one.reach));
  const source = parse(file);
  const own = declaredIn(source);
  return [...nodes(source)].flatMap((node) => {
    const reach = reachOf(node, own);
    if (reach === undefined || permitted.has(reach)) return [];
    return [`${file.path}:${lineOf(node)}: ${node.getText().split("\n")[0]} reaches for ${reach}`];
  });
}

const covers = (place: string, path: string): boolean =>
  place.endsWith("/") ? path.startsWith(place) : movable(path) === movable(place);

/** `src/system/system-clock.ts`, wherever below `src/engine` it is. */
const movable = (path: string): string => path.replace(/^([^/]+\/[^/]+)\/.*\/([^/]+)$/, "$1/$2");

function reachOf(node: ts.Node, own: ReadonlySet<string>): Reach | undefined {
  if (ts.isStringLiteral(node) && isModuleName(node)) return MODULES[node.text];
  if (isAppend(node)) return "the log";
  if (ts.isPropertyAccessExpression(node) && node.expression.getText() === "Math" && node.name.text === "random") {
    return "chance";
  }
  if (ts.isIdentifier(node) && !isOnlyAName(node) && !own.has(node.text)) {
    return Object.hasOwn(GLOBALS, node.text) ? GLOBALS[node.text] : undefined;
  }
  return undefined;
}

function isModuleName(node: ts.StringLiteral): boolean {
  const { parent } = node;
  if (ts.isImportDeclaration(parent)) return parent.importClause?.phaseModifier !== ts.SyntaxKind.TypeKeyword;
  return (
    ts.isExportDeclaration(parent) ||
    (ts.isCallExpression(parent) && parent.expression.kind === ts.SyntaxKind.ImportKeyword)
  );
}

/** `store.append(`, however the store is called and wherever it is kept. */
function isAppend(node: ts.Node): boolean {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false;
  return node.expression.name.text === "append" && /store$/i.test(node.expression.expression.getText());
}

/** The name of a property or of a type is not the thing: `clock.performance`, `{ process: 1 }`, `NodeJS.process`. */
function isOnlyAName(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent))
    return parent.name === node && parent.expression.getText() !== "globalThis";
  if (ts.isPropertyAssignment(parent) || ts.isPropertySignature(parent) || ts.isPropertyDeclaration(parent)) {
    return parent.name === node;
  }
  if (ts.isMethodDeclaration(parent) || ts.isMethodSignature(parent)) return parent.name === node;
  return (
    ts.isImportClause(parent) ||
    ts.isTypeReferenceNode(parent) ||
    ts.isQualifiedName(parent) ||
    ts.isImportSpecifier(parent)
  );
}

/** Parameters and variables of its own that happen to be called so. */
function declaredIn(source: ts.SourceFile): ReadonlySet<string> {
  const names = new Set<string>();
  for (const node of nodes(source)) {
    if (
      (ts.isParameter(node) || ts.isVariableDeclaration(node) || ts.isBindingElement(node)) &&
      ts.isIdentifier(node.name)
    ) {
      names.add(node.name.text);
    }
  }
  return names;
}
