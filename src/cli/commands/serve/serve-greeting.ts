// What `belay serve` says when it is ready: where it is, what it serves, how to log in, and what to try.
import { styleText } from "node:util";
import type { Tier } from "../../../ports/spawner.ts";
import { tierWarning } from "../../../process/containment/attacks.ts";

export interface Greeting {
  readonly version: string;
  /** Undefined: no port is open. */
  readonly url: string | undefined;
  readonly socket: string;
  /** The usual port was taken by somebody else. */
  readonly instead: number | undefined;
  readonly store: string;
  readonly agent: string;
  /** What there is to say about the agent: that it is a demo, that code was loaded. */
  readonly notices: readonly string[];
  /** Undefined: it has none. */
  readonly mode: string | undefined;
  readonly workspace: string;
  readonly tier: Tier | undefined;
  readonly tokenFile: string;
  /** How the command line is called here. */
  readonly belay: string;
  /** What the other commands need to find this server. Empty: nothing. */
  readonly options: string;
  /** What becomes of live runs when it ends. */
  readonly onStop: keyof typeof ENDS;
  /** What the agent can be asked for a start. */
  readonly prompt: string;
}

/** One fact to a line, searchable; on a terminal with a little air around it. */
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
    `\n  ${styleText("dim", `Ctrl-C ends it in order: what is going on is ${ENDS[greeting.onStop]}.`)}\n`,
  ];
}

const ENDS = { park: "set down, and taken up at the next start", cancel: "cancelled" } as const;

type Row = readonly [name: string, text: string];

/** The longest name, and a little. */
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

/** A line that works when it is pasted. The token itself is in no output of ours. */
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

/** As a shell takes it literally; plain names are left as they are. */
export const shellQuoted = (text: string): string =>
  /^[A-Za-z0-9_/.:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
