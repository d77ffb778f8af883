// The configuration file: discovered in the working directory, or named on the command line or in the environment.
//
// A directory may be a clone of a stranger's repository, or an agent's command may have written to it, and a
// configuration can run code, send keys to a URL and skip approvals. So a discovered file is used only if its path and
// content are trusted, whatever it sets and regardless of its owner. A named file is always trusted.
import { constants } from "node:fs";
import { lstat, open, realpath, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { ControlError } from "../core/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { type BelayConfig, modulesOf } from "./config.ts";
import { type ConfigContent, configContent } from "./config-content.ts";
import { checkConfig, refuseSecrets } from "./config-shape.ts";
import { exportOf, importModule } from "./own-module.ts";

export const CONFIG_NAMES: readonly string[] = [
  ...["belay.config.ts", "belay.config.js", "belay.config.mjs", "belay.config.json"],
];

/** More than a file written by hand needs. */
const CONFIG_BYTES_MAX = 256 * 1024;

export interface ConfigFile {
  readonly path: string;
  readonly config: BelayConfig;
  readonly notices: readonly string[];
}

/** Decides whether a discovered configuration may be used: its path and content were trusted before, or are now. */
export type Trust = (found: ConfigContent) => Promise<"trusted" | "untrusted">;

export interface ConfigSearch {
  readonly cwd: string;
  /** The path to read. Undefined: discover one. False: read none. */
  readonly named: string | false | undefined;
  /** File names to look for. */
  readonly names: readonly string[];
  readonly clock: Clock;
  readonly trust: Trust;
}

/** Reads and checks the configuration file. Undefined if there is none. */
export async function readConfigFile({
  cwd,
  named,
  names,
  clock,
  trust,
}: ConfigSearch): Promise<ConfigFile | undefined> {
  if (named === false) return undefined;
  if (named !== undefined) {
    const path = resolve(cwd, named);
    const config = isCode(path) ? await readCode(path, clock) : parseJson(path, await readJson(path));
    const notices = isCode(path) ? [`The configuration ${path} is code; it was run.`] : [];
    return { path, config: checked(config, path), notices };
  }
  const path = await findConfig(cwd, names);
  if (path === undefined) return undefined;
  if (isCode(path)) await checkOwn(path);
  const content = await configContent(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  if ((await trust(content)) === "untrusted") throw untrusted(content.path);
  if (isCode(path)) {
    const config = checked(await readCode(path, clock), path);
    return { path, config, notices: [`The configuration ${path} was found here. It is code; it was run.`] };
  }
  // Parses the text that the digest covers: the file itself may have changed since.
  const config = checked(parseJson(path, content.text), path);
  for (const module of modulesOf(config)) {
    await checkOwn(module);
    await checkCovered(module, content);
  }
  const powers = powersOf(config);
  const notices =
    powers.length === 0 ? [] : [`The configuration ${path} was found here. It sets ${powers.join(", ")}.`];
  return { path, config, notices };
}

/** The error for an untrusted file. Its hint is the command that trusts it. */
const untrusted = (path: string): ControlError =>
  new ControlError("invalid", `${path} was found here and is not trusted, or has changed since. It was not used.`, {
    hint: `Read it, then trust it with: belay trust ${quoted(path)}. Or use --config FILE or --no-config.`,
  });

const quoted = (path: string): string => (/^[\w./@%+:,=-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`);

/** Refuses code whose path the configuration does not contain literally: the trusted digest does not cover it. */
async function checkCovered(module: string, { path, files }: ConfigContent): Promise<void> {
  const real = await realpath(module).catch(() => module);
  if (files.includes(real)) return;
  throw new ControlError("invalid", `${path} uses ${module}, which cannot be trusted with it.`, {
    hint: `Name the configuration: --config ${quoted(path)}.`,
  });
}

/** Finds the configuration of a directory. Throws `invalid` if there are several. */
export async function findConfig(cwd: string, names: readonly string[] = CONFIG_NAMES): Promise<string | undefined> {
  const found: string[] = [];
  for (const name of names) {
    const isThere = await lstat(join(cwd, name)).then(
      () => true,
      () => false,
    );
    if (isThere) found.push(name);
  }
  if (found.length > 1) {
    throw new ControlError("invalid", `There are several configurations in ${cwd}: ${found.join(", ")}.`, {
      hint: "Keep one of them, or name one with --config.",
    });
  }
  return found[0] === undefined ? undefined : join(cwd, found[0]);
}

const isCode = (path: string): boolean => !path.endsWith(".json");

/** The settings announced at startup: code that is run, paths, approvals, and where keys and texts are sent. */
function powersOf(config: BelayConfig): readonly string[] {
  const { agent, acp, tools, hooks, mode, directories, providers = {}, processes, server, retention } = config;
  const { workspace, store, instructions } = config;
  return [
    ...(workspace === undefined ? [] : [`the workspace ${workspace}`]),
    ...(store === undefined ? [] : [`the store ${store}`]),
    ...(typeof instructions === "object" ? [`the instructions of ${instructions.file}`] : []),
    ...(agent === undefined ? [] : [`the agent ${agent}`]),
    ...(acp === undefined ? [] : [`the agent ${acp.join(" ")}`]),
    ...(tools === undefined ? [] : [`the tools ${tools}`]),
    ...(hooks === undefined ? [] : [`the hooks ${hooks}`]),
    ...(mode === "auto" ? ["the mode auto"] : []),
    ...(directories === "any" ? ["that sessions may work in any directory"] : []),
    ...Object.entries(providers).map(([name, { baseUrl, apiKeyEnv }]) => {
      const key = apiKeyEnv === undefined ? "" : ` with the key in ${apiKeyEnv}`;
      return `the provider ${name} at ${baseUrl}${key}`;
    }),
    ...(processes === undefined ? [] : ["how commands are run"]),
    ...(server === undefined ? [] : ["how the server is reached"]),
    ...(retention === undefined ? [] : ["what is deleted and when"]),
  ];
}

/** Code is loaded by path after this check, so no other user may be able to change it in between. */
async function checkOwn(path: string): Promise<void> {
  const found = await lstat(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  const uid = process.getuid?.();
  const problem = !found.isFile()
    ? "it is a link or not a regular file"
    : uid !== undefined && found.uid !== uid
      ? "it belongs to another user"
      : (found.mode & 0o022) !== 0
        ? "others can write to it"
        : undefined;
  if (problem === undefined) return;
  throw new ControlError("invalid", `${path} was not used: it is code, it was only found here, and ${problem}.`, {
    hint: "Make it writable for you alone, name the configuration with --config, or use --no-config.",
  });
}

function checked(given: unknown, path: string): BelayConfig {
  refuseSecrets(given, path);
  return absolute(checkConfig(given, { kind: "file", path }), dirname(path));
}

async function readCode(path: string, clock: Clock): Promise<unknown> {
  await lstat(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  return exportOf(await importModule(path, clock), ["config", "default"], path);
}

async function readJson(path: string): Promise<string> {
  return readText(path, CONFIG_BYTES_MAX).catch((error: unknown) => {
    throw unreadable(path, error);
  });
}

function parseJson(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's message is not repeated: it quotes the surrounding text, which may be a key.
    const place = /line \d+ column \d+/.exec(error instanceof Error ? error.message : "")?.[0];
    throw new ControlError("invalid", `${path} is not valid JSON${place === undefined ? "" : ` at ${place}`}.`, {
      hint: "JSON has no comments and no trailing commas. Or write it as belay.config.mjs.",
    });
  }
}

/** Reads a text of at most `bytesMax` bytes from anything that can be read to its end, a pipe included. */
export async function readText(path: string, bytesMax: number): Promise<string> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const block = Buffer.alloc(bytesMax + 1);
    let filled = 0;
    while (filled < block.length) {
      const { bytesRead } = await handle.read(block, filled, block.length - filled, null);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    if (filled > bytesMax) throw new ControlError("invalid", `${path} has more than ${bytesMax} bytes.`);
    return block.toString("utf8", 0, filled);
  } finally {
    await handle.close();
  }
}

/** Whether the path is a regular file, not for example a pipe. */
export const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );

function unreadable(path: string, error: unknown): ControlError {
  if (error instanceof ControlError) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const problem = { ENOENT: "does not exist", EISDIR: "is a directory", EACCES: "must be readable" }[code];
  return new ControlError("invalid", `${path} ${problem ?? `cannot be read (${code})`}.`, {
    hint: "Check the path.",
    cause: error,
  });
}

/** Returns the configuration with its paths resolved against `directory`. */
export function absolute(config: BelayConfig, directory: string): BelayConfig {
  const at = (path: string): string => resolve(directory, path);
  const { workspace, store, agent, acp, tools, hooks, instructions, server } = config;
  return {
    ...config,
    ...(workspace === undefined ? {} : { workspace: at(workspace) }),
    ...(store === undefined || store === ":memory:" ? {} : { store: at(store) }),
    ...(agent === undefined ? {} : { agent: at(agent) }),
    ...(acp === undefined ? {} : { acp: absoluteCommand(acp, at) }),
    ...(tools === undefined ? {} : { tools: at(tools) }),
    ...(hooks === undefined ? {} : { hooks: at(hooks) }),
    ...(typeof instructions === "object" ? { instructions: { file: at(instructions.file) } } : {}),
    ...(server === undefined ? {} : { server: absoluteServer(server, at) }),
  };
}

/** A program without a slash is left to PATH. */
const absoluteCommand = (
  [program, ...args]: readonly [string, ...string[]],
  at: (path: string) => string,
): readonly [string, ...string[]] => [program.includes("/") ? at(program) : program, ...args];

type Server = NonNullable<BelayConfig["server"]>;

function absoluteServer(server: Server, at: (path: string) => string): Server {
  const { socket, tls, trustedProxy } = server;
  return {
    ...server,
    ...(socket === undefined ? {} : { socket: at(socket) }),
    ...(tls === undefined ? {} : { tls: { cert: at(tls.cert), key: at(tls.key) } }),
    ...(trustedProxy === undefined
      ? {}
      : { trustedProxy: { ...trustedProxy, secretFile: at(trustedProxy.secretFile) } }),
  };
}
