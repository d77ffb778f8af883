// Carries out the attacks of `src/process/containment/attacks.ts` against one mechanism, and returns the result of
// each.
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { SessionId } from "../../src/core/model/ids.ts";
import type { Child, Mechanism, Profile } from "../../src/ports/spawner.ts";
import { ATTACKS, type Attack, type Enforcement } from "../../src/process/containment/attacks.ts";
import { type OpenSpawner, openSpawner } from "../../src/process/spawner.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { CLOSES, MOVES, markOf, survivorsOf, THREADS } from "./shapes.ts";

/** The descriptor on which `inherited-descriptor.ts` inherits the root directory. */
export const INHERITED_FD = 20;

let count = (process.pid % 10_000) * 10_000 + 5_000;

/** A data directory with a secret in it, and the paths that an attacker needs. */
class Target {
  readonly base = realpathSync(mkdtempSync(join(tmpdir(), "belay-attacks-")));
  readonly account = join(this.base, "account");
  readonly data = join(this.account, ".local/state/belay");
  readonly state = join(this.data, "belay.db.processes");
  readonly workspace = join(this.base, "work");
  readonly token = join(this.data, "token");
  readonly config = join(this.workspace, "project/belay.config.mjs");
  readonly mechanism: Mechanism;
  readonly profile: Profile;
  spawner!: OpenSpawner;

  constructor(mechanism: Mechanism, profile: Profile) {
    this.mechanism = mechanism;
    this.profile = profile;
  }

  async open(): Promise<this> {
    for (const path of [this.data, dirname(this.config)]) mkdirSync(path, { recursive: true });
    writeFileSync(this.token, "SECRET");
    writeFileSync(this.config, CONFIG);
    this.spawner = await this.another();
    return this;
  }

  another(mechanism?: Mechanism): Promise<OpenSpawner> {
    const { state: dir, workspace, data, config, profile } = this;
    const chosen = mechanism ?? this.mechanism;
    const kept = { hidden: [data], readOnly: [config] };
    return openSpawner({ dir, workspace, ...kept, clock: systemClock, mechanism: chosen, profile });
  }

  start(command: string, sessionId: SessionId = "ses_attack"): Promise<Child> {
    count += 1;
    return this.spawner.spawn({ id: `proc_attack.${count}`, sessionId, command, graceMs: 100 });
  }

  async run(command: string, sessionId?: SessionId): Promise<string> {
    const child = await this.start(command, sessionId);
    await child.ended;
    const { head, tail } = child.output.excerpt();
    return head + tail;
  }

  async close(): Promise<void> {
    await this.spawner.close();
    rmSync(this.base, { recursive: true, force: true });
  }
}

async function printed(child: Child, words: string): Promise<void> {
  let text = "";
  for await (const page of child.output.follow()) {
    text += page.text;
    if (text.includes(words)) return;
  }
}

/** Starts the command, stops it once it is up, and looks for survivors. */
async function outlives(target: Target, command: (mark: string) => string): Promise<Enforcement> {
  count += 1;
  const mark = markOf(count);
  const child = await target.start(command(mark));
  await printed(child, "up");
  child.stop(0);
  const { escaped } = await child.ended;
  const left = survivorsOf(mark);
  for (const pid of left) process.kill(pid, "SIGKILL");
  if (left.length === 0) return "refused";
  return escaped.length > 0 ? "reported" : "cannot enforce";
}

const shedding = (mark: string, word = "up"): string =>
  `env -i setsid sh -c '(sh -c "${CLOSES}; echo ${word}; exec sleep ${mark} >&-" &)'`;

const killing = (mark: string): string =>
  `${shedding(mark, "shed")}; sleep 0.1; kill -KILL $PPID; echo up; sleep ${mark}`;

const CONFIG = "export default {};\n";

/** Attempts to uncover a path that is covered by a mount, or to reach the files below it another way. */
const UNCOVERS = (path: string, token: string): string =>
  `umount -l ${path}; umount -R ${path}; cat ${token} /proc/1/root/${token}; nsenter -t 1 -m cat ${token}; ` +
  `unshare -Urm sh -c "umount ${path}; cat ${token}"`;

const CARRIED_OUT: Readonly<Record<Attack, (target: Target) => Promise<Enforcement>>> = {
  "data-directory": async (target) => {
    const { data, state, token } = target;
    await target.run("echo WORDS", "ses_neighbour");
    const output = await target.run(
      `cat ${token}; echo "sees $(ls -A ${data})"; grep -rq WORDS ${state}/output && echo SECRET; ` +
        `(cd ${data} && echo x > tokens.json.new); echo x > ${state}/ledger/forged.json; ` +
        `for file in ${state}/output/*/*; do echo x > $file; done; ${UNCOVERS(data, token)}`,
    );
    const seen = output.includes("SECRET") || !/^sees $/m.test(output);
    const changed = [join(data, "tokens.json.new"), join(state, "ledger/forged.json")].some(
      (path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined,
    );
    const outputs = readdirSync(join(state, "output"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"));
    const forged = !outputs.some((text) => text.includes("WORDS"));
    return seen || changed || forged ? "cannot enforce" : "not visible";
  },
  "renamed-directory": async (target) => {
    const { data, base } = target;
    for (let path = data; path !== base; path = dirname(path)) {
      const { ino } = lstatSync(path);
      await target.run(`mv ${path} ${path}.old && mkdir ${path}`);
      if (lstatSync(path, { throwIfNoEntry: false })?.ino === ino) continue;
      rmSync(path, { recursive: true, force: true });
      renameSync(`${path}.old`, path);
      return "cannot enforce";
    }
    return "refused";
  },
  "rotated-token": async (target) => {
    const { token, workspace } = target;
    const rotated = join(workspace, "rotated");
    const child = await target.start(
      `echo up; until [ -e ${rotated} ]; do cat ${token}; sleep 0.01; done 2>/dev/null; cat ${token}`,
    );
    await printed(child, "up");
    writeFileSync(`${token}.new`, "ROTATED");
    renameSync(`${token}.new`, token);
    writeFileSync(rotated, "");
    await child.ended;
    const { head, tail } = child.output.excerpt();
    return /ROTATED|SECRET/.test(head + tail) ? "cannot enforce" : "not visible";
  },
  descriptors: async ({ mechanism, profile, workspace }) => {
    const root = openSync("/", "r");
    const script = join(import.meta.dirname, "inherited-descriptor.ts");
    const others = Array.from({ length: INHERITED_FD - 3 }, () => "ignore" as const);
    const server = spawn(process.execPath, [script, workspace, mechanism, profile], {
      stdio: ["ignore", "pipe", "inherit", ...others, root],
    });
    closeSync(root);
    let output = "";
    server.stdout?.on("data", (data: Buffer) => {
      output += data.toString();
    });
    await once(server, "close");
    if (!output.includes("asked")) throw new Error(`The server with an inherited descriptor failed: ${output}`);
    return output.includes("found it") ? "cannot enforce" : "not visible";
  },
  "next-start": async (target) => {
    const best = await openBest(target);
    const forged = { results: { [best]: { kind: "failed", why: "x" }, group: { kind: "passed" } } };
    for (const name of ["containment.json", "last-mechanism"])
      await target.run(`echo '${JSON.stringify(forged)}' > ${target.state}/${name}`);
    return (await openBest(target)) === best ? "refused" : "cannot enforce";
  },
  configuration: async (target) => {
    const { config } = target;
    const { ino } = lstatSync(config);
    const dir = dirname(config);
    await target.run(
      `echo evil >> ${config}; mv ${config} ${config}.old; rm -f ${config}; echo evil > ${dir}/x; ` +
        `mv -f ${dir}/x ${config}; mv ${dir} ${dir}.old && cp -r ${dir}.old ${dir}; umount ${config}; ` +
        `unshare -Urm umount ${config}; echo evil >> ${config}`,
    );
    const kept = lstatSync(config, { throwIfNoEntry: false })?.ino === ino && readFileSync(config, "utf8") === CONFIG;
    return kept ? "refused" : "cannot enforce";
  },
  socket: async (target) => {
    const socket = join(target.data, "belay.sock");
    let reached = false;
    const server = createServer((connection) => {
      reached = true;
      connection.destroy();
    }).listen(socket);
    await once(server, "listening");
    await target.run(`perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => "${socket}") or die'`);
    server.close();
    await once(server, "close");
    return reached ? "cannot enforce" : "not visible";
  },
  "server-process": async (target) => {
    const { pid } = process;
    // SIGUSR1 opens the debugger of this program, so it is sent only if the signal 0 fails.
    const output = await target.run(
      `if kill -0 ${pid} || kill -USR1 ${pid}; then echo reached; fi; cat /proc/${pid}/environ`,
    );
    return /reached|PATH=/.test(output) ? "cannot enforce" : "not visible";
  },
  "leader-exited": (target) => outlives(target, (mark) => `${THREADS(mark)} & wait`),
  "left-cgroup": (target) => outlives(target, (mark) => `${MOVES}; ${shedding(mark)}; sleep ${mark}`),
  "killed-leader": (target) => outlives(target, killing),
  "left-and-killed": (target) => outlives(target, (mark) => `${MOVES}; ${killing(mark)}`),
};

async function openBest({ state: dir, workspace, data }: Target): Promise<Mechanism> {
  const spawner = await openSpawner({ dir, workspace, hidden: [data], clock: systemClock });
  await spawner.close();
  return spawner.mechanism;
}

export async function carryOut(attack: Attack, mechanism: Mechanism, profile: Profile): Promise<Enforcement> {
  const target = await new Target(mechanism, profile).open();
  try {
    return await CARRIED_OUT[attack](target);
  } finally {
    await target.close();
  }
}

/** The profiles in which a mechanism is attacked: all that it supports. */
export const PROFILES: Readonly<Record<Mechanism, readonly Profile[]>> = {
  bubblewrap: ["none", "contain", "workspace"],
  unshare: ["none", "contain"],
  cgroup: ["none"],
  anchor: ["none"],
  group: ["none"],
};

export const ATTACK_NAMES = Object.keys(ATTACKS) as readonly Attack[];
