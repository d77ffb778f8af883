// How a foreign agent ended, and what it said last on stderr, for the error that tells of it.
import type { ProcessHandle, ProcessResult } from "../../../ports/spawner.ts";
import { LAST_WORDS_BYTES_MAX } from "./limits.ts";

export async function exitReport(child: ProcessHandle, result: ProcessResult | undefined): Promise<string> {
  const { exit } = result ?? {};
  const how =
    exit?.code === undefined
      ? exit?.signal === undefined
        ? ""
        : ` by ${exit.signal}`
      : ` with exit code ${exit.code}`;
  const ended = result?.outcome.kind === "completed" && how !== "" ? ` It ended${how}.` : "";
  const said = await stderrOf(child);
  return `${ended}${said === "" ? " It said nothing on stderr." : ` Its last words on stderr: ${said}`}`;
}

async function stderrOf(child: ProcessHandle): Promise<string> {
  try {
    const output = await child.output();
    const { head, tail } = output?.excerpt({ stream: "stderr", bytesMax: LAST_WORDS_BYTES_MAX, plain: true }) ?? NONE;
    return `${head}${tail === "" ? "" : ` … ${tail}`}`.trim().replaceAll(/\s*\n\s*/g, " | ");
  } catch {
    return "";
  }
}

const NONE = { head: "", tail: "" };
