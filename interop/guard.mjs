// Ends the process that its argument names, with all its descendants, when the parent of this process ends. Its
// standard input closes then.
import { killTree } from "./process-tree.mjs";

process.stdin.resume();
process.stdin.once("end", () => {
  killTree(Number(process.argv[2]));
});
