// Ends the process that its argument names, and all below it, when whoever started this is gone: then
// nobody holds the other end of its standard input any more.
import { killTree } from "./process-tree.mjs";

process.stdin.resume();
process.stdin.once("end", () => {
  killTree(Number(process.argv[2]));
});
