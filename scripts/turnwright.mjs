// Runs the command line from a checkout, compiling first where a source is newer than the build.
import { build, isStale } from "./build.mjs";

if (isStale()) await build();
await import("../dist/src/cli/main.js");
