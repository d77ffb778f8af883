// Containment by an anchor: a small perl program that inherits every process of its tree whose parent has died, so
// that all of it stays below the anchor and can be ended from there.
//
// The anchor ends the tree on our word, and also when our end of its pipe closes: that is when the server has died.
// A program of the tree may kill the anchor, if it wants to; then the tree is found by its marks, as far as it has kept
// any.
import type { Clock } from "../../ports/clock.ts";
import { gateArguments } from "../launch/gate.ts";
import { DESCENDANTS_MAX } from "../limits.ts";
import { MarkedTree } from "../tree/marked-tree.ts";
import { askTerminal } from "../tree/polite-signal.ts";
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
 * Undefined: on this architecture we do not know the number of the call that makes an anchor. `joining` starts the gate
 * in place of the anchor itself: a tree that is also held otherwise enters there.
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

/** Of the system call prctl(2), by architecture: perl calls by number. */
const PRCTL: Partial<Record<NodeJS.Architecture, number>> = {
  ...{ x64: 157, arm64: 167, riscv64: 167, loong64: 167, ppc64: 171, s390x: 172, ia32: 172, arm: 172 },
};

/** How much of the wait is the anchor's. After that we do it ourselves. */
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
    ask: () => {
      if (plan.terminal) askTerminal(command);
      else leader.tell("T");
    },
    force: () => {
      // Should somebody have stopped it, it could not hear the word.
      leader.kill("SIGCONT");
      leader.tell("K");
    },
    left: (max = DESCENDANTS_MAX) => {
      // The command, and `max` others.
      const others = descendantsOf(leader.identity.pid, PROC, max + 1).filter((one) => one !== command.pid);
      return others.slice(0, max).flatMap((one) => {
        const stat = statOf(one);
        return typeof stat === "string" ? [] : [{ pid: one, asked: stat.group === command.pid }];
      });
    },
    verify: async (waitMs, wakes): Promise<Verified> => {
      const end = clock.elapsed() + waitMs;
      await until(() => leader.exit !== undefined, { clock, waitMs: waitMs * ANCHOR_SHARE, wakes });
      // It ends so only when the kernel has told it that it has no child left, and whoever lost a parent is its child.
      if (leader.exit?.code === ANCHOR_DONE) return { killed: 0, left: [] };
      // Killed by another process: whom it held has other parents now, and may have shed every mark.
      const unsure = leader.exit !== undefined;
      const verified = await marked.end(end - clock.elapsed());
      leader.kill("SIGKILL");
      // The anchor itself stands for what could not be looked for in time: it has ended.
      const { pid } = leader.identity;
      return unsure && verified.left.every((one) => one === pid)
        ? { ...verified, left: [pid], unverified: unsure }
        : verified;
    },
  };
}

/** How the anchor ends when nobody is left. No signal and no shell ends so. */
const ANCHOR_DONE = 77;

/**
 * The anchor. Its first argument is the number of prctl; the others start the gate.
 * Not with POSIX.pm: loading it takes longer than all the rest.
 */
const ANCHOR = String.raw`
use strict; use warnings;
my ($prctl, @gate) = @ARGV;
# What we open from here on is closed when we become another program, except the five that the gate needs.
$^F = 5;
# PR_SET_CHILD_SUBREAPER: whoever loses its parent below us becomes our child.
syscall($prctl, 36, 1, 0, 0, 0) == 0 or die "no subreaper: $!\n";
open(my $control, '<&=', 3) or die "no control: $!\n";
open(my $status, '>&=', 4) or die "no status: $!\n";
# The word to go is handed on to the gate; everything else on the control pipe is for us.
pipe(my $goRead, my $goWrite) or die "no pipe: $!\n";
# Signals only write a byte here, so that one wait hears both them and the control pipe.
pipe(my $wakeRead, my $wakeWrite) or die "no pipe: $!\n";
$SIG{CHLD} = sub { syswrite($wakeWrite, 'c') };
$SIG{$_} = sub { } for qw(TERM INT HUP QUIT);
$SIG{PIPE} = 'IGNORE';
my $command = fork();
defined $command or die "no fork: $!\n";
if ($command == 0) {
  $SIG{PIPE} = 'DEFAULT';
  setpgrp(0, 0);
  # The gate reads its word where it always does: the lowest number that is free is the one we give up here.
  close($control); open(my $go, '<&', $goRead) or exit 125;
  fileno($go) == 3 or exit 125;
  exec { $gate[0] } @gate or exit 125;
}
# Nobody but the tree is to hold its output and its liveness pipe.
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
# Answers -1 if the kernel knows of no child of ours, dead or alive.
sub reap {
  my $pid;
  while (($pid = waitpid(-1, 1)) > 0) {
    next unless $pid == $command;
    $alive = 0;
    syswrite($status, ($? & 127) ? "signal " . ($? & 127) . "\n" : "code " . ($? >> 8) . "\n");
  }
  return $pid;
}
# Stops everybody first, so that nobody forks away while others die.
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
