// Preloaded by every process that runs tests: has Node import TypeScript sources as compile.mjs compiled them.
// So they run as those of users do. A test runner's own way to import looks each name up anew wherever it is
// used, which makes them slower.
import * as nodeModule from "node:module";
import * as hooks from "./compiled-hooks.mjs";

// Where Node asks in the same thread, that is quicker.
if (nodeModule.registerHooks !== undefined) nodeModule.registerHooks(hooks);
else nodeModule.register("./compiled-hooks.mjs", import.meta.url);
