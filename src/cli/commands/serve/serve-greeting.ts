// The message of `belay serve` when it is ready: its addresses, what it serves, how to log in, and what to try.
import { styleText } from "node:util";
import type { Tier } from "../../../ports/spawner.ts";
import { tierWarning } from "../../../process/containment/attacks.ts";

export interface Greeting {
  readonly version: string;
  /** Undefined: no port is open. */
  readonly url: string | undefined;
  readonly socket: string;
  /** The default port, if another program had it. */
  readonly instead: number | undefined;
  readonly store: string;
  readonly agent: string;
  /** Notices about the agent: that it is a demo, that code was loaded. */
  readonly notices: readonly string[];
  /** Undefined: the agent has no modes. */
  readonly mode: string | undefined;
  readonly workspace: string;
  readonly tier: Tier | undefined;
  readonly tokenFile: string;
  /** The command with which the command line is started here. */
  readonly belay: string;
  /** The options with which other commands find this server. Empty: none. */
  readonly options: string;
  /** What happens to live runs at shutdown. */
  readonly onStop: keyof typeof AT_SHUTDOWN;
  /** A first prompt for the agent. */
  readonly prompt: string;
}

/** One fact to a line, so that it can be searched; formatted on a terminal. */
export function greet(greeting: Greeting, terminal: boolean): readonly string[] {
  const rows = [...facts(greeting), ...(greeting.url === undefined ? [] : logIn(greeting.url, greeting.tokenFile))];
  const head = `Belay ${greeting.version} is ready.`;
  const tries = commands(greeting);
  if (!terminal)
    return [head, ...rows.map(([name, text]) => `${name}: ${text}`), ...tries.map((line) => `try: ${line}`)];
  const row = ([name, text]: Row): string => `  ${styleText("dim", name.padEnd(WIDTH))}${text}`;
  return [
    `\n${styleText("bold", head)}\n`,
    ...rows.map(row),
    `\n  ${styleText("bold", "In a second shell")}`,
    ...tries.map((line) => `  ${line}`),
    `\n  ${styleText("dim", `Ctrl-C shuts down gracefully: running work is ${AT_SHUTDOWN[greeting.onStop]}.`)}\n`,
  ];
}

const AT_SHUTDOWN = { park: "parked until the next start", cancel: "cancelled" } as const;

type Row = readonly [name: string, text: string];

/** The width of the column of names. */
const WIDTH = 11;

function facts(greeting: Greeting): readonly Row[] {
  const { url, socket, instead, store, agent, notices, mode, workspace, tier } = greeting;
  const warning = tier === undefined ? undefined : tierWarning(tier);
  const taken = instead === undefined ? "" : ` (port ${instead} is taken by another program)`;
  return [
    ...(url === undefined ? [] : [["listens", `${url}${taken}`] as const]),
    ["socket", socket],
    ["store", store],
    ["agent", agent],
    ...notices.map((notice) => ["note", notice] as const),
    ...(mode === undefined ? [] : [["mode", mode] as const]),
    ["workspace", workspace],
    ["processes", tier === undefined ? "tier not known yet" : `held by tier ${tier}; belay doctor says more`],
    ...(warning === undefined ? [] : [["note", warning] as const]),
  ];
}

/** A command that works when it is pasted. It reads the token from its file, so that no output contains it. */
function logIn(url: string, tokenFile: string): readonly Row[] {
  const header = `"Authorization: Bearer $(cat ${shellQuoted(tokenFile)})"`;
  return [
    ["token", tokenFile],
    ["log in", `curl -H ${header} ${url}/v1/status`],
  ];
}

function commands({ belay, options, prompt }: Greeting): readonly string[] {
  const added = options === "" ? "" : ` ${options}`;
  return [`${belay} run${added} ${shellQuoted(prompt)}`, `${belay} ps${added}`, `${belay} stop-all${added} --yes`];
}

/** Quotes a text for a shell; plain names are left as they are. */
export const shellQuoted = (text: string): string =>
  /^[A-Za-z0-9_/.:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
