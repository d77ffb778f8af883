// The stops that get lost most easily; stop-table.slow.test.ts has the rest of the table.
import { QUICK_NETWORKS } from "./stop-methods.ts";
import { testStops } from "./stop-table.ts";

testStops(QUICK_NETWORKS);
