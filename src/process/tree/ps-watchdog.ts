// The watchdog for platforms without /proc: it scans with `ps`.
//
// During its first scan the trees are still intact. So it also finds the descendants of each leader, whatever marks
// they have shed; a leader is identified by its pid and start second. Later scans use the cookie alone.
//
// Cookies reach `awk` as lines on stdin, never as arguments: those would mark `awk` itself in the table.
import { COOKIE_NAME } from "../launch/environment.ts";
import { type Dialect, PS_ENVIRONMENT, psArguments, startText } from "./ps-output.ts";
import { ROUNDS_MAX, WATCHDOG_EMPTY_SCANS, type WatchdogKind } from "./watchdog.ts";

export function psWatchdog(program: string, dialect: Dialect): WatchdogKind {
  return {
    script: scriptOf(`'${program}' ${psArguments(dialect, { cookies: true }).join(" ")}`),
    describe: ({ pid, startTime, cookie }) =>
      `${pid} ${startTime === undefined ? "-" : startText(startTime)} ${cookie}`,
    env: PS_ENVIRONMENT,
  };
}

/** Input: a line for each tree (leader, start, cookie), then the table. Prints pids, and groups as -pid. */
const FIND = `
table == 0 && $1 == "table" { table = 1; next }
table == 0 { start[$1] = $2; wanted[$3] = 1; next }
{
  all[$1] = 1; parent[$1] = $2
  if (($1 in start) && $3 == $1 && $6 "_" $7 "_" $8 "_" $9 == start[$1]) { leads[$1] = 1; found[$1] = 1 }
  rest = $0
  while (at = index(rest, " ${COOKIE_NAME}=")) {
    rest = substr(rest, at + ${COOKIE_NAME.length + 2})
    many = split(substr(rest, 1, 4096), words, " ")
    for (i = 1; i <= many && words[i] ~ /^proc_[^=]*$/; i++) if (words[i] in wanted) found[$1] = 1
  }
}
END {
  do {
    more = 0
    for (pid in all) if (!(pid in found) && (parent[pid] in found)) { found[pid] = 1; more = 1 }
  } while (more)
  for (pid in leads) print "-" pid
  for (pid in found) print pid
}`;

/** A pid is signalled by a table as old as one run of `ps`: without the server there is no better proof. */
const scriptOf = (ps: string): string => `
trap '' TERM INT HUP QUIT PIPE
max=0
while read -r what slot rest; do
  case $what in
    +) eval "tree_$slot=\\$rest"; [ "$slot" -lt "$max" ] || max=$((slot + 1)) ;;
    -) unset "tree_$slot" ;;
  esac
done
trees= slot=0
while [ "$slot" -lt "$max" ]; do
  eval "rest=\\\${tree_$slot-}"
  slot=$((slot + 1))
  [ -z "$rest" ] || trees="$trees$rest
"
done
[ -n "$trees" ] || exit 0
empty=0 round=0
while [ "$empty" -lt ${WATCHDOG_EMPTY_SCANS} ] && [ "$round" -lt ${ROUNDS_MAX} ]; do
  found=$({ echo "\${trees}table"; ${ps}; } | awk '${FIND}')
  if [ -n "$found" ]; then empty=0; else empty=$((empty + 1)); fi
  for pid in $found; do kill -KILL "$pid"; done
  round=$((round + 1))
  sleep 0.01
done
`;
