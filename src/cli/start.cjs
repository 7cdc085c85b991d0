#!/usr/bin/env node
// The first file that a command runs, in words that Node of any age can read: it says so where Node is
// too old for the rest.
var needed = [20, 19];
var version = process.versions.node;
var parts = version.split(".");
var isOld =
  Number(parts[0]) < needed[0] || (Number(parts[0]) === needed[0] && Number(parts[1]) < needed[1]);
if (isOld) {
  process.stderr.write(
    "turnwright: Cannot run on Node " +
      version +
      ", expected " +
      needed.join(".") +
      " or newer (https://nodejs.org)\n",
  );
  process.exit(2);
} else {
  require("./start-main.cjs");
}
