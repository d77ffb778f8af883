import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterAll, describe, expect, test } from "vitest";
import { systemClock } from "../engine/system-clock.ts";
import type { Plan, Wrapped } from "./containment.ts";
import { gateArguments, leaderScript, SHELL } from "./gate.ts";
import { PipePool } from "./pipe-pool.ts";
import { childrenOf, identityOf, isStill } from "./proc.ts";
import { abandon, reachGate, type Starting, start } from "./start.ts";

const home = realpathSync(mkdtempSync(join(tmpdir(), "belay-start-")));
const pipes = new PipePool(join(home, "pipes"));
afterAll(() => {
  pipes.close();
  rmSync(home, { recursive: true, force: true });
});

const plan: Plan = {
  ...{ id: "proc_start.1", cookie: "proc_start.1:x", argv: ["/bin/sh", "-c", "echo begun"], cwd: home },
  workspace: home,
  ...{ env: { PATH: "/usr/bin:/bin" }, profile: "none", limits: { processesMax: 100 }, terminal: false },
};

const starting = (wrapped: Wrapped, more: Partial<Plan> = {}): Starting => ({
  ...{ plan: { ...plan, ...more }, wrapped, openInput: false, pipes, clock: systemClock },
});

const ordinary: Wrapped = { file: SHELL, args: ["-c", leaderScript(), "belay", ...gateArguments(plan)] };

describe("a start", () => {
  test("of a leader that is not there says so", async () => {
    await expect(start(starting({ file: "/no/such/leader", args: [] }))).rejects.toMatchObject({ code: "not_started" });
  });

  test("in a directory that has vanished says so", async () => {
    const gone = starting(ordinary, { cwd: join(home, "gone") });
    await expect(start(gone)).rejects.toMatchObject({ code: "not_started" });
  });

  test("with more than the system takes is invalid", async () => {
    const long = starting({
      file: SHELL,
      args: [
        "-c",
        ":",
        ..."x"
          .repeat(64)
          .split("")
          .map((x) => x.repeat(120_000)),
      ],
    });
    await expect(start(long)).rejects.toMatchObject({ code: "invalid" });
  });

  test("of a leader that fails tells its words", async () => {
    const wish = starting({ file: SHELL, args: ["-c", "echo it is broken >&2; exit 1"] });
    const started = await start(wish);
    await expect(reachGate(started, wish)).rejects.toMatchObject({
      code: "not_started",
      message: expect.stringContaining("it is broken"),
    });
  });

  test("that is given up before the gate leaves nobody, and the command has not begun", async () => {
    const wish = starting(ordinary);
    const started = await start(wish);
    await reachGate(started, wish);
    const [gate] = childrenOf(started.child.pid);
    const identity = identityOf(gate ?? 0);
    let said = "";
    started.stdout.on("data", (data: Buffer) => {
      said += data.toString();
    });
    await abandon(started, systemClock);
    expect(identity !== undefined && isStill(identity)).toBe(false);
    expect(said).toBe("");
  });

  test("from a worker is refused: the tree would end with the worker", async () => {
    const module = new URL("./spawner.ts", import.meta.url).href;
    const code = `import(${JSON.stringify(module)})
      .then(({ openSpawner }) => openSpawner({ dir: "unused", workspace: "unused" }))
      .catch((error) => require("node:worker_threads").parentPort.postMessage(error.code));`;
    const worker = new Worker(code, { eval: true });
    const answer = await new Promise((resolve) => worker.once("message", resolve));
    await worker.terminate();
    expect(answer).toBe("uncontained");
  });
});
