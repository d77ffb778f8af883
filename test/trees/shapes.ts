// Trees that resist being killed, as data: their commands, and where they are known to escape.
//
// Every process of a tree has the tree's mark in its arguments. So survivors are found independently of the mechanisms
// under test.
import { readdirSync, readFileSync } from "node:fs";
import type { Mechanism } from "../../src/ports/spawner.ts";

export interface Shape {
  readonly name: string;
  /** For `sh -c`. Prints `up` when the processes that matter are running. */
  readonly command: (mark: string) => string;
  /** `asked`: its command dies of SIGTERM. `forced`: it must be killed. `alone`: it ends by itself. */
  readonly end: "asked" | "forced" | "alone";
  /** A process of it has an empty environment, and so no cookie for a later server to find. */
  readonly bare?: true;
  /** Mechanisms whose leader it kills, so that its end is reported as not verified. */
  readonly unsure?: readonly Mechanism[];
  /** Lines in its output at the end, after SIGTERM. */
  readonly says?: readonly string[];
  /** Mechanisms under which a process of it survives, with the reason. Documented, not excused. */
  readonly leaks?: Readonly<Partial<Record<Mechanism, string>>>;
  /** Mechanisms under which a process of it also survives a killed server. */
  readonly leaksWithoutServer?: Readonly<Partial<Record<Mechanism, string>>>;
}

/** Its first thread has ended, and another runs. By its pid it looks like a dead process. */
export const THREADS = (mark: string): string =>
  `perl -Mthreads -e '${[
    "$| = 1;",
    'threads->create(sub { print "up\\n"; sleep 1 while 1 })->detach;',
    // exit(2) of this thread alone, not exit_group(2).
    "my %exit = (x86_64 => 60, aarch64 => 93); use Config; my ($arch) = split /-/, $Config{archname};",
    "select undef, undef, undef, 0.05; syscall($exit{$arch}, 0);",
  ].join(" ")}' ${mark}`;

const SHEDS = "it leaves its session, sheds its environment and closes every file: nothing marks it any more";

const sleeper = (mark: string): string => `sh -c "echo up; exec sleep ${mark}"`;

export const SHAPES: readonly Shape[] = [
  {
    name: "plain",
    command: (mark) => `sleep ${mark} & sleep ${mark} & echo up; wait`,
    end: "asked",
  },
  {
    name: "setsid",
    command: (mark) => `setsid ${sleeper(mark)} & wait`,
    end: "asked",
  },
  {
    name: "double fork",
    command: (mark) => `setsid sh -c '(${sleeper(mark)} &)'; sleep ${mark}`,
    end: "asked",
  },
  {
    name: "empty environment",
    command: (mark) => `env -i setsid ${sleeper(mark)} & wait`,
    bare: true,
    end: "asked",
  },
  {
    name: "empty environment, double fork",
    command: (mark) => `env -i setsid sh -c '(${sleeper(mark)} &)'; sleep ${mark}`,
    bare: true,
    end: "asked",
  },
  {
    name: "ignores polite signals",
    command: (mark) => `trap '' TERM INT HUP; sleep ${mark} & echo up; while :; do sleep ${mark}; done`,
    end: "forced",
  },
  {
    name: "pid hopper",
    command: (mark) => `${hopper(mark)}; sh -c "$hop" "$hop" ${mark}; echo up; sleep ${mark}`,
    end: "forced",
  },
  {
    name: "pid hopper, empty environment",
    command: (mark) => `${hopper(mark)}; env -i sh -c "$hop" "$hop" ${mark}; echo up; sleep ${mark}`,
    bare: true,
    end: "forced",
    leaksWithoutServer: { group: "it is faster than the watchdog, which is a shell, and has no cookie to be found by" },
  },
  {
    name: "deep chain of 60",
    command: (mark) =>
      `deep='if [ "$1" -gt 0 ]; then sh -c "$0" "$0" $(($1 - 1)) ${mark}; else echo up; sleep ${mark}; fi; :'; ` +
      `sh -c "$deep" "$deep" 60 ${mark}`,
    end: "asked",
  },
  {
    name: "wide fan of 100",
    command: (mark) => `n=0; while [ $n -lt 100 ]; do sleep ${mark} & n=$((n + 1)); done; echo up; wait`,
    end: "asked",
  },
  {
    name: "pipe holder",
    command: (mark) => `setsid ${sleeper(mark)} & exit 0`,
    end: "alone",
  },
  {
    name: "stops itself",
    command: (mark) => `echo up; kill -STOP $$; sleep ${mark}`,
    end: "asked",
  },
  {
    name: "nested traps",
    command: (mark) =>
      `trap 'wait; echo outer tidied; exit 0' TERM; ` +
      `sh -c 'trap "echo inner tidied; exit 0" TERM; echo up; while :; do sleep 0.01; done' ${mark} & wait; wait`,
    end: "asked",
    says: ["inner tidied", "outer tidied"],
  },
  {
    name: "closes all files",
    command: (mark) => `setsid sh -c '${CLOSES}; echo up; exec sleep ${mark} >&-' & wait`,
    end: "asked",
  },
  {
    name: "first thread exited",
    command: (mark) => `${THREADS(mark)} & wait`,
    end: "asked",
  },
  {
    name: "moves to another control group",
    command: (mark) => `${MOVES}; setsid ${sleeper(mark)} & wait`,
    end: "asked",
  },
  {
    name: "moves to another control group and sheds everything",
    command: (mark) =>
      `${MOVES}; env -i setsid sh -c '(sh -c "${CLOSES}; echo up; exec sleep ${mark} >&-" &)'; sleep ${mark}`,
    bare: true,
    end: "asked",
    leaks: { group: SHEDS },
  },
  {
    name: "kills its leader",
    command: (mark) => `setsid ${sleeper(mark)} & kill -KILL $PPID; wait`,
    end: "asked",
    unsure: ["cgroup", "anchor"],
    leaksWithoutServer: { anchor: "without its anchor only a server ends it: this one, if it lives, or the next one" },
  },
  {
    name: "sheds everything",
    command: (mark) => `env -i setsid sh -c '(sh -c "${CLOSES}; echo up; exec sleep ${mark} >&-" &)'; sleep ${mark}`,
    bare: true,
    end: "asked",
    leaks: { group: SHEDS },
  },
];

/** Afterwards the process is in another control group, if it may write there. */
export const MOVES =
  "for group in /sys/fs/cgroup /sys/fs/cgroup/unified; do echo 0 > $group/cgroup.procs; done 2>/dev/null";

/** Shapes that escape where processes are listed with `ps`, and why. */
export const ESCAPES_PS: Readonly<Record<string, "unmarked" | "too fast" | "unnoticed">> = {
  "empty environment": "unmarked",
  "empty environment, double fork": "unmarked",
  "pid hopper": "too fast",
  "pid hopper, empty environment": "too fast",
  "sheds everything": "unnoticed",
  "moves to another control group and sheds everything": "unnoticed",
};

/** Starts a successor every two milliseconds: another pid, another session. */
function hopper(mark: string): string {
  return `hop='sleep 0.002; exec setsid -f sh -c "$0" "$0" ${mark}'`;
}

/** All descriptors except the one for `up`, which is closed by the final exec. */
export const CLOSES = `exec ${[0, 2, 3, 4, 5, 6, 7, 8, 9].map((fd) => `${fd}>&-`).join(" ")}`;

/** A unique number of months: the argument of `sleep`, and the mark to search for. */
export const markOf = (unique: number): string => `8${String(unique).padStart(9, "0")}.5`;

/** All living processes whose arguments contain a mark, by mark. */
export function marked(marks: readonly string[]): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    // A process whose first thread has ended shows its arguments in other threads only, and looks dead.
    const tasks = tasksOf(name);
    const text = tasks.map((task) => read(`/proc/${name}/task/${task}/cmdline`)).join(" ");
    const mark = text.trim() === "" ? undefined : marks.find((one) => text.includes(one));
    // A process that is dead and not yet reaped has no arguments; its state is checked all the same.
    if (mark === undefined || (tasks.length === 1 && /\) [ZXx] /.test(read(`/proc/${name}/stat`)))) continue;
    found.set(mark, [...(found.get(mark) ?? []), Number(name)]);
  }
  return found;
}

function tasksOf(pid: string): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

export const survivorsOf = (mark: string): readonly number[] => marked([mark]).get(mark) ?? [];

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
