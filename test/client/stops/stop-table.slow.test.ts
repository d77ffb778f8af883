// The rest of the table of stops: prompts and stops that arrive late, in another order, or at a restarted server.
import { NETWORKS, QUICK_NETWORKS } from "./stop-methods.ts";
import { testStops } from "./stop-table.ts";

testStops(NETWORKS.filter((network) => !QUICK_NETWORKS.includes(network)));
