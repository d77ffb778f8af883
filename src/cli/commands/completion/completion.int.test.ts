import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeProgram } from "../../program.ts";
import { isHidden } from "../../shared/usage-error.ts";
import { completionScript, type Shell } from "./completion.ts";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "belay-completion-"));
  // Replaces the program: prints its arguments as ids.
  const belay = join(folder, "belay");
  writeFileSync(belay, '#!/bin/sh\necho "run_1 ses_2" | tr " " "\\n"; echo "asked_$*" | tr " " "_"\n');
  chmodSync(belay, 0o755);
  writeFileSync(join(folder, "belay.bash"), completionScript(makeProgram(), "bash"));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The completions that bash offers for the last of these words. */
function offered(...words: readonly string[]): readonly string[] {
  const script = `
    source "$1"; shift
    COMP_WORDS=(belay "$@"); COMP_CWORD=$#
    _belay
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` };
  const out = execFileSync("bash", ["-c", script, "bash", join(folder, "belay.bash"), ...words], { cwd: folder, env });
  return out.toString("utf8").trim().split("\n");
}

describe("in bash", () => {
  test("commands", () => {
    expect(offered("can")).toEqual(["cancel"]);
    expect(offered("")).toContain("stop-all");
    expect(offered("")).not.toContain("complete-ids");
  });

  test("options of that command", () => {
    expect(offered("cancel", "--no")).toEqual(["--no-remind"]);
    expect(offered("verify", "--")).toEqual(["--json", "--help"]);
  });

  test("ids, of the kind the argument or option takes", () => {
    expect(offered("cancel", "")).toEqual(["run_1", "ses_2", "asked_complete-ids"]);
    expect(offered("cancel", "run")).toEqual(["run_1"]);
    expect(offered("queue", "asked")).toEqual(["asked_complete-ids_session"]);
    expect(offered("queue", "ses_2", "--edit", "asked")).toEqual(["asked_complete-ids_run"]);
    expect(offered("approve", "asked")).toEqual(["asked_complete-ids_question"]);
  });

  test("files, choices, and the names of commands", () => {
    expect(offered("verify", "belay.")).toEqual(["belay.bash"]);
    expect(offered("ps", "--store", "belay.")).toEqual(["belay.bash"]);
    expect(offered("completion", "")).toEqual(["bash", "zsh", "fish"]);
    expect(offered("help", "canc")).toEqual(["cancel"]);
    expect(offered("token", "")).toContain("rotate");
  });
});

describe.each<Shell>(["bash", "zsh", "fish"])("for %s", (shell) => {
  const script = completionScript(makeProgram(), shell);

  test("the script has every visible command with every option", () => {
    for (const command of makeProgram().commands.filter((one) => !isHidden(one))) {
      expect(script).toContain(command.name());
      for (const { long } of command.options) expect(script).toContain(long?.slice(2));
    }
  });

  test("quotes are balanced: no description can end a string", () => {
    for (const line of script.split("\n").filter((one) => !one.startsWith("#"))) {
      expect((line.match(/'/g)?.length ?? 0) % 2, line).toBe(0);
    }
  });
});
