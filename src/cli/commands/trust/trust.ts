// `belay trust`, and the question whether to use a configuration that was found. It is asked once per path and content;
// without a terminal the configuration is refused.
import { statSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { type ConfigContent, configContent } from "../../../config/config-content.ts";
import { findConfig, type Trust } from "../../../config/config-file.ts";
import { ControlError } from "../../../core/errors.ts";
import { type DataDir, makeDataDir, openDataDir } from "../../../sdk/data-dir.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { dayAndTime } from "../../shared/format/age.ts";
import { styleOf, table } from "../../shared/format/table.ts";
import { visibleText } from "../../shared/format/visible-text.ts";
import type { Ask } from "../../shared/terminal/held-terminal.ts";
import { AGENT_MARK, inMargin } from "../../shared/terminal/margin.ts";
import { print } from "../../shared/terminal/terminal.ts";
import { atTerminal, isInteractive } from "../../shared/terminal/terminal-prompt.ts";
import { TrustedConfigs } from "./trusted-configs.ts";

export interface TrustFlags {
  readonly home?: string;
  readonly remove?: true;
  readonly json?: true;
}

/** Trusts a configuration; without a path, lists the trusted ones. */
export async function runTrust(typed: string | undefined, flags: TrustFlags): Promise<number> {
  const home = openDataDir({ home: flags.home, env: process.env });
  const trusted = new TrustedConfigs(home);
  if (typed === undefined) return list(trusted, flags);
  const path = await configAt(resolve(typed));
  if (flags.remove) {
    const removed = trusted.remove(await realpath(path).catch(() => path));
    if (!removed) throw new ControlError("not_found", `${path} is not trusted.`, { hint: "See: belay trust" });
    print(flags.json ? JSON.stringify({ path, removed }) : `No longer trusted: ${visibleText(path)}`);
    return EXIT_OK;
  }
  const content = await configContent(path);
  makeDataDir(home);
  trusted.add(content, systemClock.now());
  if (flags.json) print(JSON.stringify({ path: content.path, digest: content.digest, files: content.files }));
  else for (const file of content.files) print(`Trusted with its present content: ${visibleText(file, "escaped")}`);
  return EXIT_OK;
}

function list(trusted: TrustedConfigs, { json }: TrustFlags): number {
  const all = trusted.list();
  if (json) print(JSON.stringify({ trusted: all }));
  else if (all.length === 0) print("No configuration is trusted yet.");
  else {
    const rows = all.map(({ path, digest, at }) => [dayAndTime(at), digest.slice(0, 12), visibleText(path, "escaped")]);
    const columns = [{ title: "SINCE" }, { title: "SHA-256" }, { title: "PATH" }];
    for (const line of table(columns, rows, styleOf(process.stdout))) print(line);
  }
  return EXIT_OK;
}

/** The file itself, or the one that is found in a directory. */
async function configAt(path: string): Promise<string> {
  const found = statSync(path, { throwIfNoEntry: false });
  const file = found?.isDirectory() ? await findConfig(path) : path;
  if (found !== undefined && file !== undefined) return file;
  const problem = found === undefined ? `${path} does not exist.` : `There is no configuration in ${path}.`;
  throw new ControlError("not_found", problem, {
    hint: "Name a belay.config.ts, .js, .mjs or .json, or its directory.",
  });
}

/** `ask`: a question may be asked at the terminal, if there is one. */
export const trustOf =
  (home: DataDir, may: "ask" | "refuse"): Trust =>
  async (content) => {
    const trusted = new TrustedConfigs(home);
    if (trusted.has(content)) return "trusted";
    if (may === "refuse" || !isInteractive() || !(await isTrusted(content))) return "untrusted";
    trusted.add(content, systemClock.now());
    return "trusted";
  };

/** Asks at the terminal. Only keys pressed after the question was on the screen answer it. */
async function isTrusted(content: ConfigContent): Promise<boolean> {
  const terminalPrompt = atTerminal(systemClock);
  const left = new AbortController();
  const leave = (): void => left.abort();
  process.once("SIGINT", leave);
  try {
    const typed = await terminalPrompt.ask({ ...questionOf(content), signal: left.signal });
    return typed?.trim().toLowerCase() === "yes";
  } finally {
    process.removeListener("SIGINT", leave);
    terminalPrompt.release();
  }
}

/** More lines are not shown: the user can open the file. */
const LINES_SHOWN = 40;

function questionOf({ files, text: written }: ConfigContent): Omit<Ask, "signal"> {
  const [path = "", ...others] = files.map((file) => visibleText(file, "escaped"));
  const lines = visibleText(written).trimEnd().split("\n");
  const rest = lines.length > LINES_SHOWN ? [`… and ${lines.length - LINES_SHOWN} more lines`] : [];
  const shown = [path, "", ...lines.slice(0, LINES_SHOWN), ...rest, ...others.map((file) => `with ${file}`)];
  const text = (): string => inMargin(AGENT_MARK, shown.join("\n"), process.stderr.columns);
  const why = "It is not trusted yet, or has changed. It decides what runs with your rights.";
  return {
    about: () => `\nConfiguration found here\n${text()}${why}\n`,
    prompt: "Type yes to trust exactly this, anything else to leave: ",
    paste: "dropped",
  };
}
