#!/usr/bin/env node
// Starts the command line. Written in the syntax of long ago, so that an old Node can still say that it is too old.
/* global process, console */
(function () {
  var version = process.versions.node.split(".");
  var major = Number(version[0]);
  var minor = Number(version[1]);
  if (major < 22 || (major === 22 && minor < 13)) {
    console.error(
      "Belay needs Node.js 22.13 or newer, and this is " +
        process.versions.node +
        ": install a newer one from https://nodejs.org and try again.",
    );
    process.exitCode = 1;
    return;
  }

  // The package carries `dist`. A fresh checkout may not have been built yet; there, Node reads the sources themselves.
  import("../dist/cli/main.js")
    .catch(function (error) {
      if (!isMissing(error, "/dist/cli/main.js")) throw error;
      return import("../src/cli/main.ts").catch(function (second) {
        throw isMissing(second, "/src/cli/main.ts") || second.code === "ERR_UNKNOWN_FILE_EXTENSION"
          ? notBuilt()
          : second;
      });
    })
    .catch(function (error) {
      console.error(error && error.name === "NotBuilt" ? error.message : "belay could not start: " + describe(error));
      process.exitCode = 1;
    });

  function isMissing(error, file) {
    return error && error.code === "ERR_MODULE_NOT_FOUND" && String(error.url).slice(-file.length) === file;
  }

  function notBuilt() {
    var error = new Error("Belay has not been built here: run `npm run build` first.");
    error.name = "NotBuilt";
    return error;
  }

  function describe(error) {
    return error && error.stack ? error.stack : String(error);
  }
})();
