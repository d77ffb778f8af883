// Ends what a server has left when it dies without a word: for tiers in which the kernel does not.
//
// One small shell program for a server. It is told of every tree, and waits for the end of its stdin, which comes when
// the server is gone, however it died. Then it ends every tree it knows of: its control group, its group, and everybody
// who carries its cookie or holds its liveness pipe, until nobody is found any more.
//
// Invariants
// 1. A tree is known to the watchdog before its gate is opened.
// 2. The watchdog is in a session of its own and has no cookie, so it neither dies with a tree nor ends itself.
import { type ChildProcess, spawn } from "node:child_process";
import type { Writable } from "node:stream";
import { ControlError } from "../../core/errors.ts";
import { SHELL } from "../launch/gate.ts";

export interface Ward {
  /** The leader of its group. */
  readonly pid: number;
  /** Of the leader. */
  readonly startTime?: number;
  readonly cookie: string;
  readonly livenessLink: string | undefined;
  readonly cgroup: string | undefined;
}

/** How it looks for whom it has to end. */
export interface WatchdogKind {
  /** Reads lines: `+ SLOT` and what `tell` says of a tree, `- SLOT`. At the end of them it ends those that are left. */
  readonly script: string;
  readonly tell: (ward: Ward) => string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A watchdog that somebody kills is replaced so often. Whoever does it more often means it. */
const RESTARTS_MAX = 100;

export class Watchdog {
  readonly #wards: (Ward | undefined)[] = [];
  readonly #onNotice: (text: string) => void;
  readonly #kind: WatchdogKind;
  #child: (ChildProcess & { readonly stdin: Writable }) | undefined;
  #restarts = 0;
  #closed = false;

  constructor(onNotice: (text: string) => void, breed: WatchdogKind = PROC_BREED) {
    this.#onNotice = onNotice;
    this.#kind = breed;
  }

  /** Answers how it is told that the tree is gone. Throws if there is no watchdog, and none can be had. */
  watch(ward: Ward): () => void {
    if (this.#child === undefined) this.#begin();
    const free = this.#wards.indexOf(undefined);
    const slot = free < 0 ? this.#wards.length : free;
    this.#wards[slot] = ward;
    this.#tell(slot, ward);
    return () => {
      this.#wards[slot] = undefined;
      this.#child?.stdin.write(`- ${slot}\n`);
    };
  }

  /** No tree is left. */
  close(): void {
    this.#closed = true;
    this.#child?.stdin.end();
  }

  /** Also tells it of every tree there is: it may be a late one, whose predecessor could not be replaced at once. */
  #begin(): void {
    this.#child = this.#start();
    for (const [slot, ward] of this.#wards.entries()) if (ward !== undefined) this.#tell(slot, ward);
  }

  #start(): ChildProcess & { readonly stdin: Writable } {
    const child = spawn(SHELL, ["-c", this.#kind.script, "belay-watchdog"], {
      cwd: "/",
      env: { PATH: "/usr/bin:/bin:/usr/sbin:/sbin", ...this.#kind.env },
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    child.on("error", () => undefined);
    // Where no file was left for its pipe it has none at all, whatever the types of Node say.
    if (child.pid === undefined) {
      throw new ControlError("not_started", "The watchdog, which ends processes should the server die, did not start.");
    }
    child.stdin.on("error", () => undefined);
    // It must not keep a program alive that has nothing else to do.
    child.unref();
    if ("unref" in child.stdin && typeof child.stdin.unref === "function") child.stdin.unref();
    child.once("exit", () => this.#lost());
    return child;
  }

  #lost(): void {
    this.#child = undefined;
    if (this.#closed) return;
    this.#restarts += 1;
    const then = this.#isReplaced()
      ? "Another one was started."
      : "The next process that starts brings another one; until then nobody would end those that go on now.";
    this.#onNotice(`The watchdog, which ends processes should the server die, was killed. ${then}`);
  }

  #isReplaced(): boolean {
    if (this.#restarts > RESTARTS_MAX) return false;
    try {
      this.#begin();
      return true;
    } catch {
      // The next tree tries again, and is not started without one.
      return false;
    }
  }

  #tell(slot: number, ward: Ward): void {
    this.#child?.stdin.write(`+ ${slot} ${this.#kind.tell(ward)}\n`);
  }
}

/** Rounds of the watchdog until it gives up, some 20 ms each. What is left then, the next server finds. */
export const ROUNDS_MAX = 200;

/** So many looks in a row must find nobody. More than elsewhere, because a look of a shell is slow. */
export const EMPTY_LOOKS = 5;

/**
 * One line for each tree: slot, leader, cookie, liveness pipe, control group. The group is ended only if its leader
 * carries the cookie: then the number is proven to be that tree's.
 */
const WATCHDOG = `
trap '' TERM INT HUP QUIT PIPE
max=0
while read -r what slot rest; do
  case $what in
    +) eval "tree_$slot=\\$rest"; [ "$slot" -lt "$max" ] || max=$((slot + 1)) ;;
    -) unset "tree_$slot" ;;
  esac
done
cookies= links= cgroups= slot=0
while [ "$slot" -lt "$max" ]; do
  eval "rest=\\\${tree_$slot-}"
  slot=$((slot + 1))
  [ -n "$rest" ] || continue
  read -r pid cookie link cgroup <<END
$rest
END
  if [ "$cgroup" != - ]; then
    echo 1 >"$cgroup/cgroup.kill"
    cgroups="$cgroups $cgroup"
  fi
  grep -aqF -e "$cookie" "/proc/$pid/environ" && kill -KILL "-$pid"
  cookies="$cookies -e $cookie"
  [ "$link" = - ] || links="$links -o -lname $(echo "$link" | sed 's/[][]/\\\\&/g')"
done
[ -n "$cookies" ] || exit 0
lines=
echo x | grep -q --line-buffered x && lines=--line-buffered
empty=0 round=0
while [ "$empty" -lt ${EMPTY_LOOKS} ] && [ "$round" -lt ${ROUNDS_MAX} ]; do
  # Killed as it is found: who hops from pid to pid is elsewhere when the look is over.
  found=$({
    # A process whose first thread has ended is passed over by cgroup.kill, and shows its environment in the others.
    for cgroup in $cgroups; do sed 's:^:/proc/:' "$cgroup/cgroup.procs"; done
    grep -alF $lines $cookies /proc/[0-9]*/task/[0-9]*/environ
    [ -z "$links" ] || find /proc/[0-9]*/fd -maxdepth 1 -false $links
  } | while read -r path; do
    pid=\${path#/proc/}
    kill -KILL "\${pid%%/*}" && echo found
  done)
  if [ -n "$found" ]; then empty=0; else empty=$((empty + 1)); fi
  round=$((round + 1))
  sleep 0.01
done
slot=0
while [ "$slot" -lt "$max" ]; do
  eval "rest=\\\${tree_$slot-}"
  slot=$((slot + 1))
  case $rest in */*) rmdir "/\${rest#*/}" ;; esac
done
`;

/** By /proc. */
const PROC_BREED: WatchdogKind = {
  script: WATCHDOG,
  tell: ({ pid, cookie, livenessLink, cgroup }) => `${pid} ${cookie} ${livenessLink ?? "-"} ${cgroup ?? "-"}`,
};
