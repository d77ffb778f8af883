// Keeps Node's debugger closed. The debugger has no authentication: any program on this machine that reaches its port
// can run code in this process. `main.ts`, which `npm start` runs, imports this file before anything else;
// `bin/belay.js`, which an installed `belay` runs, does the same check before it loads this file.
import inspector from "node:inspector";

// Without a listener, Node opens its debugger on this signal.
process.on("SIGUSR1", () => {});

if (inspector.url() !== undefined && process.env.BELAY_INSPECT !== "1") {
  inspector.close();
  // If no option opened it, a signal did, before the line above.
  if (`${process.env.NODE_OPTIONS ?? ""} ${process.execArgv.join(" ")}`.includes("--inspect")) {
    console.error(
      "belay does not start with Node's debugger open: any program on this machine could run code in it.\n" +
        "Remove --inspect from NODE_OPTIONS, or set BELAY_INSPECT=1 if you mean it.",
    );
    process.exit(2);
  }
}
