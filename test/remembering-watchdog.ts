// A watchdog that watches nobody: it remembers what it was told.
import type { Ward, Watchdog } from "../src/process/watchdog.ts";

export function rememberingWatchdog() {
  const wards: Ward[] = [];
  const told: string[] = [];
  const watchdog = {
    watch: (ward: Ward) => {
      wards.push(ward);
      return () => void told.push("forgotten");
    },
    close: () => void told.push("closed"),
  } as unknown as Watchdog;
  return { watchdog, wards, told };
}
