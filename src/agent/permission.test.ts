import { describe, expect, test } from "vitest";
import {
  modalTools,
  modeHas,
  PERMISSION_MODES,
  type PermissionMode,
  permissionsOf,
  WORK_MODES,
  workTools,
} from "./permission.ts";
import type { Tool } from "./tools/tool.ts";

const INPUTS: Readonly<Record<string, object>> = {
  read_file: { path: "a" },
  list_files: {},
  search_files: { query: "a" },
  write_file: { path: "a", text: "" },
  edit_file: { path: "a", old: "b", new: "c" },
  shell: { command: "true" },
  start_process: { command: "true" },
  read_output: { processId: "proc_1" },
  wait_process: { processId: "proc_1" },
  stop_process: { processId: "proc_1" },
};

async function asking(tools: Readonly<Record<string, Tool>>, mode?: string): Promise<readonly string[]> {
  const judged = Object.entries(tools).map(async ([name, one]) => {
    const verdict = await one.judge(JSON.parse(JSON.stringify(INPUTS[name])), { id: "call_1", mode });
    return verdict.kind === "takes" && verdict.approval !== false ? [name] : [];
  });
  return (await Promise.all(judged)).flat().toSorted();
}

describe("a permission mode", () => {
  test("ask has every tool, and needs approval for those that change something", async () => {
    const tools = workTools("ask");
    expect(Object.keys(tools).toSorted()).toEqual(Object.keys(INPUTS).toSorted());
    expect(await asking(tools)).toEqual(["edit_file", "shell", "start_process", "write_file"]);
  });

  test("auto has every tool, and needs no approval", async () => {
    const tools = workTools("auto");
    expect(Object.keys(tools).toSorted()).toEqual(Object.keys(INPUTS).toSorted());
    expect(await asking(tools)).toEqual([]);
  });

  test("read-only has no tool that writes or runs anything, whatever the options say", () => {
    const tools = workTools("read-only", { files: { approval: { write_file: false } } });
    expect(Object.keys(tools).toSorted()).toEqual(["list_files", "read_file", "search_files"]);
  });

  test("permissionsOf() matches the tools of each mode", async () => {
    for (const mode of PERMISSION_MODES) {
      const tools = workTools(mode);
      const asks = await asking(tools);
      for (const [name, permission] of Object.entries(permissionsOf(mode))) {
        expect([name, Object.hasOwn(tools, name)]).toEqual([name, permission !== "absent"]);
        expect([name, asks.includes(name)]).toEqual([name, permission === "asks"]);
      }
    }
  });

  test("`approval` of the host takes precedence", async () => {
    const files = { approval: { write_file: false, read_file: true } };
    expect(await asking(workTools("ask", { files }))).toEqual(["edit_file", "read_file", "shell", "start_process"]);
    expect(await asking(workTools("auto", { processes: { approval: { shell: true } } }))).toEqual(["shell"]);
  });

  test("an unknown mode is refused, with a suggestion", () => {
    expect(() => permissionsOf("readonly" as PermissionMode)).toThrow("Did you mean read-only?");
    expect(() => workTools("yolo" as PermissionMode)).toThrow("The modes are ask, auto, read-only.");
  });
});

describe("modalTools()", () => {
  test("behave like the tools of the session's mode", async () => {
    const tools = modalTools();
    for (const mode of PERMISSION_MODES) {
      const there = Object.fromEntries(Object.entries(tools).filter(([name]) => modeHas(mode, name)));
      expect(Object.keys(there).toSorted()).toEqual(Object.keys(workTools(mode)).toSorted());
      expect(await asking(there, mode)).toEqual(await asking(workTools(mode)));
    }
  });

  test("need approval in an unset or unknown mode", async () => {
    for (const mode of [undefined, "plan"]) {
      expect(await asking(modalTools(), mode)).toEqual(["edit_file", "shell", "start_process", "write_file"]);
    }
  });

  test("`approval` of the host takes precedence", async () => {
    const tools = modalTools({ files: { approval: { write_file: false } }, processes: { approval: { shell: true } } });
    expect(await asking(tools, "ask")).toEqual(["edit_file", "shell", "start_process"]);
    expect(await asking(tools, "auto")).toEqual(["shell"]);
  });

  test("the menu has every mode, once", () => {
    expect(WORK_MODES.map(({ id }) => id)).toEqual(PERMISSION_MODES);
  });
});
