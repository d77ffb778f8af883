// Carries out what `src/process/containment/attacks.ts` lists, with one mechanism, and reports what came of each
// attack.
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Child, Mechanism } from "../../src/ports/spawner.ts";
import { ATTACKS, type Attack, type Enforcement } from "../../src/process/containment/attacks.ts";
import { type OpenSpawner, openSpawner } from "../../src/process/spawner.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { CLOSES, MOVES, markOf, survivorsOf, THREADS } from "./shapes.ts";

/** The descriptor under which `inherited-descriptor.ts` is given the root directory. */
export const INHERITED_FD = 20;

let count = (process.pid % 10_000) * 10_000 + 5_000;

/** A data directory with a secret in it, and what an attacker needs to know. */
class Ground {
  readonly base = realpathSync(mkdtempSync(join(tmpdir(), "belay-attacks-")));
  readonly account = join(this.base, "account");
  readonly data = join(this.account, ".local/state/belay");
  readonly state = join(this.data, "belay.db.processes");
  readonly workspace = join(this.base, "work");
  readonly token = join(this.data, "token");
  readonly mechanism: Mechanism;
  spawner!: OpenSpawner;

  constructor(mechanism: Mechanism) {
    this.mechanism = mechanism;
  }

  async open(): Promise<this> {
    for (const path of [this.data, this.workspace]) mkdirSync(path, { recursive: true });
    writeFileSync(this.token, "SECRET");
    this.spawner = await this.another();
    return this;
  }

  another(mechanism?: Mechanism): Promise<OpenSpawner> {
    const { state: dir, workspace, data } = this;
    const chosen = mechanism ?? this.mechanism;
    return openSpawner({ dir, workspace, hidden: [data], clock: systemClock, mechanism: chosen });
  }

  start(command: string): Promise<Child> {
    count += 1;
    return this.spawner.spawn({ id: `proc_attack.${count}`, sessionId: "ses_attack", command, graceMs: 100 });
  }

  async run(command: string): Promise<string> {
    const child = await this.start(command);
    await child.ended;
    const { head, tail } = child.output.excerpt();
    return head + tail;
  }

  async close(): Promise<void> {
    await this.spawner.close();
    rmSync(this.base, { recursive: true, force: true });
  }
}

async function heard(child: Child, words: string): Promise<void> {
  let text = "";
  for await (const page of child.output.follow()) {
    text += page.text;
    if (text.includes(words)) return;
  }
}

/** Starts it, stops it once it is up, and looks who is left. */
async function outlives(ground: Ground, command: (mark: string) => string): Promise<Enforcement> {
  count += 1;
  const mark = markOf(count);
  const child = await ground.start(command(mark));
  await heard(child, "up");
  child.stop(0);
  const { escaped } = await child.ended;
  const left = survivorsOf(mark);
  for (const pid of left) process.kill(pid, "SIGKILL");
  if (left.length === 0) return "refused";
  return escaped.length > 0 ? "reported" : "cannot enforce";
}

const shedding = (mark: string, word = "up"): string =>
  `env -i setsid sh -c '(sh -c "${CLOSES}; echo ${word}; exec sleep ${mark} >&-" &)'`;

const CARRIED_OUT: Readonly<Record<Attack, (ground: Ground) => Promise<Enforcement>>> = {
  "data-directory": async (ground) => {
    const { data, state, token } = ground;
    const said = await ground.run(
      `cat ${token}; echo "sees $(ls -A ${data})"; cd ${data} && echo x > tokens.json.new; ` +
        `echo x > ${state}/ledger/forged.json`,
    );
    const seen = said.includes("SECRET") || !/^sees $/m.test(said);
    const changed = [join(data, "tokens.json.new"), join(state, "ledger/forged.json")].some(
      (path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined,
    );
    return seen || changed ? "cannot enforce" : "not visible";
  },
  "renamed-directory": async (ground) => {
    const { data, base } = ground;
    for (let path = data; path !== base; path = dirname(path)) {
      const { ino } = lstatSync(path);
      await ground.run(`mv ${path} ${path}.old && mkdir ${path}`);
      if (lstatSync(path, { throwIfNoEntry: false })?.ino === ino) continue;
      rmSync(path, { recursive: true, force: true });
      renameSync(`${path}.old`, path);
      return "cannot enforce";
    }
    return "refused";
  },
  "rotated-token": async (ground) => {
    const { token, workspace } = ground;
    const rotated = join(workspace, "rotated");
    const child = await ground.start(
      `echo up; until [ -e ${rotated} ]; do cat ${token}; sleep 0.01; done 2>/dev/null; cat ${token}`,
    );
    await heard(child, "up");
    writeFileSync(`${token}.new`, "ROTATED");
    renameSync(`${token}.new`, token);
    writeFileSync(rotated, "");
    await child.ended;
    const { head, tail } = child.output.excerpt();
    return /ROTATED|SECRET/.test(head + tail) ? "cannot enforce" : "not visible";
  },
  descriptors: async ({ mechanism, workspace }) => {
    const root = openSync("/", "r");
    const script = join(import.meta.dirname, "inherited-descriptor.ts");
    const others = Array.from({ length: INHERITED_FD - 3 }, () => "ignore" as const);
    const server = spawn(process.execPath, [script, workspace, mechanism], {
      stdio: ["ignore", "pipe", "inherit", ...others, root],
    });
    closeSync(root);
    let said = "";
    server.stdout?.on("data", (data: Buffer) => {
      said += data.toString();
    });
    await once(server, "close");
    if (!said.includes("asked")) throw new Error(`The server with an inherited descriptor failed: ${said}`);
    return said.includes("found it") ? "cannot enforce" : "not visible";
  },
  "next-start": async (ground) => {
    const best = await openBest(ground);
    const forged = { results: { [best]: { kind: "failed", why: "x" }, group: { kind: "passed" } } };
    for (const name of ["containment.json", "last-mechanism"])
      await ground.run(`echo '${JSON.stringify(forged)}' > ${ground.state}/${name}`);
    return (await openBest(ground)) === best ? "refused" : "cannot enforce";
  },
  "server-process": async (ground) => {
    const said = await ground.run(`kill -0 ${process.pid} && echo reached; cat /proc/${process.pid}/environ`);
    return /reached|PATH=/.test(said) ? "cannot enforce" : "not visible";
  },
  "leader-exited": (ground) => outlives(ground, (mark) => `${THREADS(mark)} & wait`),
  "left-cgroup": (ground) => outlives(ground, (mark) => `${MOVES}; ${shedding(mark)}; sleep ${mark}`),
  "killed-leader": (ground) =>
    outlives(ground, (mark) => `${shedding(mark, "shed")}; sleep 0.1; kill -KILL $PPID; echo up; sleep ${mark}`),
};

async function openBest({ state: dir, workspace, data }: Ground): Promise<Mechanism> {
  const spawner = await openSpawner({ dir, workspace, hidden: [data], clock: systemClock });
  await spawner.close();
  return spawner.mechanism;
}

export async function carryOut(attack: Attack, mechanism: Mechanism): Promise<Enforcement> {
  const ground = await new Ground(mechanism).open();
  try {
    return await CARRIED_OUT[attack](ground);
  } finally {
    await ground.close();
  }
}

export const ATTACK_NAMES = Object.keys(ATTACKS) as readonly Attack[];
