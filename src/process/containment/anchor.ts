// Containment by an anchor: a small perl program that becomes the parent of every orphan in its tree, so that the whole
// tree stays below it and can be ended from there.
//
// The anchor ends the tree on our command, and when our end of its pipe closes, which means that the server has died. A
// program of the tree can kill the anchor deliberately; then the tree is found by the marks it has kept.
import type { Clock } from "../../ports/clock.ts";
import { gateArguments } from "../launch/gate.ts";
import { DESCENDANTS_MAX } from "../limits.ts";
import { MarkedTree } from "../tree/marked-tree.ts";
import { sigtermTerminal } from "../tree/polite-signal.ts";
import { until } from "../tree/poll-until.ts";
import { childrenOf, descendantsOf, identityOf, PROC, statOf } from "../tree/proc.ts";
import type { SharedScan } from "../tree/shared-scan.ts";
import type { Containment, HeldTree, LaunchPlan, Leader, Verified } from "./containment.ts";

export interface AnchorOptions {
  readonly perl: string;
  readonly arch: NodeJS.Architecture;
  readonly sharedScan: SharedScan;
  readonly clock: Clock;
}

/**
 * Undefined: the number of prctl(2) is unknown on this architecture. `joining` starts the gate instead of the anchor
 * itself: a tree with a second mechanism enters that there.
 */
export function anchor(
  options: AnchorOptions,
  joining: (plan: LaunchPlan) => readonly string[] = () => [],
): Containment | undefined {
  const prctl = PRCTL[options.arch];
  if (prctl === undefined) return undefined;
  return {
    mechanism: "anchor",
    tier: "anchor",
    profiles: ["none"],
    wrap: (plan) => ({
      file: options.perl,
      args: ["-e", ANCHOR, String(prctl), ...joining(plan), ...gateArguments(plan)],
    }),
    hold: (leader, plan) => holdAnchored(leader, plan, options),
  };
}

/** The number of the system call prctl(2), by architecture: perl calls by number. */
const PRCTL: Partial<Record<NodeJS.Architecture, number>> = {
  ...{ x64: 157, arm64: 167, riscv64: 167, loong64: 167, ppc64: 171, s390x: 172, ia32: 172, arm: 172 },
};

/** The share of the wait that the anchor gets. After that we end the tree ourselves. */
const ANCHOR_SHARE = 0.5;

function holdAnchored(leader: Leader, plan: LaunchPlan, options: AnchorOptions): HeldTree {
  const { clock } = options;
  const [pid] = childrenOf(leader.identity.pid);
  const command = pid === undefined ? undefined : identityOf(pid);
  if (command === undefined) throw new Error("The tree has ended before it was held.");
  const marked = new MarkedTree(leader, plan.cookie, options);
  return {
    pid: command.pid,
    identity: leader.identity,
    sendSigterm: () => {
      if (plan.terminal) sigtermTerminal(command);
      else leader.write("T");
    },
    force: () => {
      // A stopped anchor could not read its command.
      leader.kill("SIGCONT");
      leader.write("K");
    },
    left: (max = DESCENDANTS_MAX) => {
      // The command, and `max` other processes.
      const others = descendantsOf(leader.identity.pid, PROC, max + 1).filter((one) => one !== command.pid);
      return others.slice(0, max).flatMap((one) => {
        const stat = statOf(one);
        return typeof stat === "string" ? [] : [{ pid: one, signalled: stat.group === command.pid }];
      });
    },
    verify: async (waitMs, wakes): Promise<Verified> => {
      const end = clock.elapsed() + waitMs;
      await until(() => leader.exit !== undefined, { clock, waitMs: waitMs * ANCHOR_SHARE, wakes });
      // It exits so only once the kernel reports that it has no child left, and every orphan of the tree is its child.
      if (leader.exit?.code === ANCHOR_DONE) return { killed: 0, left: [] };
      // Killed by another process: the members of its tree have other parents now, and may have shed every mark.
      const unsure = leader.exit !== undefined;
      const verified = await marked.end(end - clock.elapsed());
      leader.kill("SIGKILL");
      // The anchor has ended; its pid stands for the processes that could not be searched in time.
      const { pid } = leader.identity;
      return unsure && verified.left.every((one) => one === pid)
        ? { ...verified, left: [pid], unverified: unsure }
        : verified;
    },
  };
}

/** Exit code of the anchor once no process is left. No signal and no shell results in it. */
const ANCHOR_DONE = 77;

/**
 * The anchor program. Its first argument is the number of prctl; the others start the gate. It does not use POSIX.pm,
 * which would take longer to load than all the rest.
 */
const ANCHOR = String.raw`
use strict; use warnings;
my ($prctl, @gate) = @ARGV;
# Descriptors opened from here on are closed on exec, except the five that the gate needs.
$^F = 5;
# PR_SET_CHILD_SUBREAPER: every orphan below us becomes our child.
syscall($prctl, 36, 1, 0, 0, 0) == 0 or die "no subreaper: $!\n";
open(my $control, '<&=', 3) or die "no control: $!\n";
open(my $status, '>&=', 4) or die "no status: $!\n";
# GO is passed on to the gate; everything else on the control pipe is for us.
pipe(my $goRead, my $goWrite) or die "no pipe: $!\n";
# Signal handlers only write a byte here, so that one select covers them and the control pipe.
pipe(my $wakeRead, my $wakeWrite) or die "no pipe: $!\n";
$SIG{CHLD} = sub { syswrite($wakeWrite, 'c') };
$SIG{$_} = sub { } for qw(TERM INT HUP QUIT);
$SIG{PIPE} = 'IGNORE';
my $command = fork();
defined $command or die "no fork: $!\n";
if ($command == 0) {
  $SIG{PIPE} = 'DEFAULT';
  setpgrp(0, 0);
  # The gate reads GO from its usual descriptor: the lowest free number is the one that we close here.
  close($control); open(my $go, '<&', $goRead) or exit 125;
  fileno($go) == 3 or exit 125;
  exec { $gate[0] } @gate or exit 125;
}
# Only the tree may hold its output and its liveness pipe.
open(STDIN, '<', '/dev/null'); open(STDOUT, '>', '/dev/null'); open(STDERR, '>', '/dev/null');
{ open(my $liveness, '<&=', 5); close($liveness) if $liveness; }
my $alive = 1;

sub children {
  open(my $list, '<', "/proc/$_[0]/task/$_[0]/children") or return ();
  my $line = <$list>; return split ' ', ($line // '');
}
sub descendants {
  my @all = my @open = children($$);
  while (@open) { push @all, my @more = children(shift @open); push @open, @more }
  return @all;
}
# Returns -1 if we have no child, dead or alive.
sub reap {
  my $pid;
  while (($pid = waitpid(-1, 1)) > 0) {
    next unless $pid == $command;
    $alive = 0;
    syswrite($status, ($? & 127) ? "signal " . ($? & 127) . "\n" : "code " . ($? >> 8) . "\n");
  }
  return $pid;
}
# Stops all processes first, so that none forks while others die.
sub slay {
  while (1) {
    kill 'STOP', descendants();
    kill 'KILL', descendants();
    exit ${ANCHOR_DONE} if reap() == -1;
    select(undef, undef, undef, 0.0005);
  }
}
while (1) {
  my $wanted = ''; vec($wanted, fileno($control), 1) = 1; vec($wanted, fileno($wakeRead), 1) = 1;
  my $count = select(my $found = $wanted, undef, undef, undef);
  if ($count < 1) { reap(); next }
  if (vec($found, fileno($wakeRead), 1)) { sysread($wakeRead, my $bytes, 4096); reap() }
  next unless vec($found, fileno($control), 1);
  my $read = sysread($control, my $words, 4096);
  next unless defined $read;
  # The end of the pipe is the end of the server.
  slay() if $read == 0;
  for my $word (split //, $words) {
    slay() if $word eq 'K';
    if ($word eq 'T') { if ($alive) { kill 'TERM', -$command; kill 'CONT', -$command } next }
    syswrite($goWrite, $word);
    if ($word eq "\n") { close($goWrite) }
  }
}
`;
