// Converts the options of `belay serve` into the configuration of the server.
import { readFileSync, statSync } from "node:fs";
import type { RateLimitsConfig, ServerConfig } from "../../../config/config.ts";
import { ControlError } from "../../../core/errors.ts";
import { suggest } from "../../../core/suggest.ts";
import type { TrustedProxy } from "../../../http/transport/listener.ts";
import type { DataDir, Environment } from "../../../sdk/data-dir.ts";
import { LEVELS, type Level } from "../../../telemetry/log-line.ts";
import { plainLine } from "../../shared/format/plain-text.ts";
import type { AgentFlags } from "../../shared/server/agent-options.ts";
import { wholeNumber } from "../../shared/whole-number.ts";

export interface ServeFlags extends AgentFlags {
  readonly host?: string;
  readonly port?: string;
  readonly socket?: string;
  /** False with --no-tcp. */
  readonly tcp: boolean;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly allowHost?: readonly string[];
  readonly allowOrigin?: readonly string[];
  readonly behindProxy?: string;
  readonly home?: string;
  readonly store?: string;
  readonly retention?: string;
  readonly onStop: "park" | "cancel";
  readonly drainMs: string;
  readonly logLevel?: string;
  readonly logJson?: boolean;
  readonly json?: boolean;
  readonly changesPerSecond?: string;
  readonly streamsPerToken?: string;
  readonly connections?: string;
}

/** An hour: no shutdown needs longer. */
const DRAIN_MS_MAX = 3_600_000;

/** The upper bound of the limits: more than one process can serve. */
const LIMIT_MAX = 100_000;

/** The file of the log level contains one word. */
const WORD_BYTES_MAX = 64;

/** The file of the proxy's secret contains one line. */
const SECRET_BYTES_MAX = 4_096;

export function serverOf(flags: ServeFlags): ServerConfig {
  const { host, socket, tlsCert: cert, tlsKey: key, allowHost, allowOrigin, behindProxy } = flags;
  if ((cert === undefined) !== (key === undefined)) {
    throw new ControlError("invalid", "TLS takes both a certificate and its key.", {
      hint: "Give --tls-cert FILE and --tls-key FILE.",
    });
  }
  const crowd = rateLimitsOf(flags);
  const port = flags.port === undefined ? undefined : wholeNumber(flags.port, "--port", { from: 0, to: 65_535 });
  return {
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port }),
    ...(socket === undefined ? {} : { socket }),
    ...(cert === undefined || key === undefined ? {} : { tls: { cert, key } }),
    ...(allowHost === undefined ? {} : { hosts: allowHost }),
    ...(allowOrigin === undefined ? {} : { origins: allowOrigin }),
    ...(Object.keys(crowd).length === 0 ? {} : { crowd }),
    ...(behindProxy === undefined ? {} : { trustedProxy: { secretFile: behindProxy } }),
  };
}

function rateLimitsOf({ changesPerSecond, streamsPerToken, connections }: ServeFlags): RateLimitsConfig {
  const limitOf = (typed: string | undefined, option: string): number | undefined =>
    typed === undefined ? undefined : wholeNumber(typed, option, { from: 1, to: LIMIT_MAX });
  const limits = {
    changesPerSecond: limitOf(changesPerSecond, "--changes-per-second"),
    streamsPerToken: limitOf(streamsPerToken, "--streams-per-token"),
    connections: limitOf(connections, "--connections"),
  };
  return Object.fromEntries(Object.entries(limits).filter(([, number]) => number !== undefined));
}

export const drainMsOf = ({ drainMs }: ServeFlags): number =>
  wholeNumber(drainMs, "--drain-ms", { from: 0, to: DRAIN_MS_MAX, unit: "ms" });

/** The log level of the file in the home, which can change while the server runs; else of the option; else of `env`. */
export function levelOf({ logLevel }: Pick<ServeFlags, "logLevel">, home: DataDir, env: Environment): Level {
  const written = writtenIn(home.levelFile);
  const word = written ?? logLevel ?? (env.BELAY_LOG_LEVEL || "info");
  if (isLevel(word)) return word;
  if (written !== undefined) throw noLevel(word, `the file ${home.levelFile}`, "into that file, or remove it");
  throw logLevel === undefined ? noLevel(word, "BELAY_LOG_LEVEL", "there") : noLevel(word, "--log-level", "there");
}

function noLevel(word: string, place: string, where: string): ControlError {
  const levels = Object.keys(LEVELS);
  const meant = suggest(word, levels);
  const right =
    meant === undefined ? `They are: ${levels.join(", ")}. Write one of them` : `Did you mean ${meant}? Write it`;
  return new ControlError("invalid", `There is no log level "${plainLine(word, 40)}", as ${place} has it.`, {
    hint: `${right} ${where}.`,
  });
}

function writtenIn(file: string): string | undefined {
  const found = statSync(file, { throwIfNoEntry: false });
  return found?.isFile() && found.size <= WORD_BYTES_MAX ? readFileSync(file, "utf8").trim() : undefined;
}

const isLevel = (word: string): word is Level => Object.hasOwn(LEVELS, word);

/** Reads the secret of the proxy from a file: every user of the machine can read command lines. */
export function proxyOf({ trustedProxy }: ServerConfig): TrustedProxy | undefined {
  if (trustedProxy === undefined) return undefined;
  const { secretFile, header } = trustedProxy;
  try {
    if (statSync(secretFile).size > SECRET_BYTES_MAX) throw new Error("It is too large.");
    return { header, secret: readFileSync(secretFile, "utf8").trim() };
  } catch (cause) {
    throw new ControlError("invalid", `The secret of the proxy cannot be read from ${secretFile}.`, {
      hint: "It is a file with one line, which the proxy sends as x-belay-proxy with each request.",
      cause,
    });
  }
}
