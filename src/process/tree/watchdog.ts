// Ends the trees of a server that has died, for tiers in which the kernel does not.
//
// A watchdog is one small shell program per server. It receives every tree on its stdin and waits for the end of stdin,
// which comes when the server is gone, however it died. Then it ends every tree it knows: its control group, its group,
// and every process that carries its cookie or holds its liveness pipe, until none is found.
//
// Invariants
// 1. The watchdog knows a tree before the tree's gate is opened.
// 2. The watchdog has its own session and no cookie, so it neither dies with a tree nor ends itself.
import { type ChildProcess, spawn } from "node:child_process";
import type { Writable } from "node:stream";
import { ControlError } from "../../core/errors.ts";
import { SHELL } from "../launch/gate.ts";

export interface Ward {
  /** The leader of its group. */
  readonly pid: number;
  /** The leader's. */
  readonly startTime?: number;
  readonly cookie: string;
  readonly livenessLink: string | undefined;
  readonly cgroup: string | undefined;
}

/** How the watchdog finds the processes to end. */
export interface WatchdogKind {
  /**
   * Reads lines: `+ SLOT` and the text of `describe` adds a tree, `- SLOT` removes it. At the end of input it ends the
   * rest.
   */
  readonly script: string;
  readonly describe: (ward: Ward) => string;
  readonly env?: Readonly<Record<string, string>>;
}

/** How often a watchdog that was killed is replaced. More kills than this are deliberate. */
const RESTARTS_MAX = 100;

export class Watchdog {
  readonly #wards: (Ward | undefined)[] = [];
  readonly #onNotice: (text: string) => void;
  readonly #kind: WatchdogKind;
  #child: (ChildProcess & { readonly stdin: Writable }) | undefined;
  #restarts = 0;
  #closed = false;

  constructor(onNotice: (text: string) => void, kind: WatchdogKind = PROC_WATCHDOG) {
    this.#onNotice = onNotice;
    this.#kind = kind;
  }

  /** Returns a function that removes the tree again. Throws if no watchdog runs and none can be started. */
  watch(ward: Ward): () => void {
    if (this.#child === undefined) this.#begin();
    const free = this.#wards.indexOf(undefined);
    const slot = free < 0 ? this.#wards.length : free;
    this.#wards[slot] = ward;
    this.#send(slot, ward);
    return () => {
      this.#wards[slot] = undefined;
      this.#child?.stdin.write(`- ${slot}\n`);
    };
  }

  /** Call when no tree is left. */
  close(): void {
    this.#closed = true;
    this.#child?.stdin.end();
  }

  /** Also sends every current tree: its predecessor may have died without being replaced at once. */
  #begin(): void {
    this.#child = this.#start();
    for (const [slot, ward] of this.#wards.entries()) if (ward !== undefined) this.#send(slot, ward);
  }

  #start(): ChildProcess & { readonly stdin: Writable } {
    const child = spawn(SHELL, ["-c", this.#kind.script, "belay-watchdog"], {
      cwd: "/",
      env: { PATH: "/usr/bin:/bin:/usr/sbin:/sbin", ...this.#kind.env },
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    child.on("error", () => undefined);
    // Without a free file descriptor for the pipe there is no stdin at all, contrary to Node's types.
    if (child.pid === undefined) {
      throw new ControlError("not_started", "The watchdog, which ends processes if the server dies, did not start.");
    }
    child.stdin.on("error", () => undefined);
    // The watchdog must not keep an otherwise idle program alive.
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
      : "None could be started; the next start of a process retries. Until then, processes survive a server crash.";
    this.#onNotice(`The watchdog, which ends processes if the server dies, was killed. ${then}`);
  }

  #isReplaced(): boolean {
    if (this.#restarts > RESTARTS_MAX) return false;
    try {
      this.#begin();
      return true;
    } catch {
      // The next tree tries again, and is not started without a watchdog.
      return false;
    }
  }

  #send(slot: number, ward: Ward): void {
    this.#child?.stdin.write(`+ ${slot} ${this.#kind.describe(ward)}\n`);
  }
}

/** Rounds before the watchdog gives up, some 20 ms each. The next server ends what is left then. */
export const ROUNDS_MAX = 200;

/** How many scans in a row must find no process. More than elsewhere, because a scan by a shell is slow. */
export const WATCHDOG_EMPTY_SCANS = 5;

/**
 * One line for each tree: slot, leader, cookie, liveness pipe, control group. The group is ended only if its leader
 * carries the cookie, which proves that the number is still that tree's.
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
while [ "$empty" -lt ${WATCHDOG_EMPTY_SCANS} ] && [ "$round" -lt ${ROUNDS_MAX} ]; do
  # Killed as it is found: a process that hops from pid to pid is elsewhere when the scan is over.
  found=$({
    # A process whose first thread has ended is missed by cgroup.kill, and shows its environment in other threads.
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

/** The watchdog over /proc. */
const PROC_WATCHDOG: WatchdogKind = {
  script: WATCHDOG,
  describe: ({ pid, cookie, livenessLink, cgroup }) => `${pid} ${cookie} ${livenessLink ?? "-"} ${cgroup ?? "-"}`,
};
