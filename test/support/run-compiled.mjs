// Preloaded by every process that runs tests: makes Node import TypeScript sources as compile.mjs
// compiled them, so they run like a user's copy. A test runner's own import looks each name up
// again at each use, which is slower.
import * as nodeModule from "node:module";
import * as hooks from "./compiled-hooks.mjs";

// Hooks in the same thread are quicker, if Node has them.
if (nodeModule.registerHooks !== undefined) nodeModule.registerHooks(hooks);
else nodeModule.register("./compiled-hooks.mjs", import.meta.url);
