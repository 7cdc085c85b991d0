import path from "node:path";

/** Longest argument that Linux takes, in bytes: 32 pages with the NUL at its end. */
const longestBytes = 131_071;
/** UTF-16 units of a piece: at most three bytes each, so that a piece fits. */
const pieceLength = 40_000;
/** Programs that read a script from the argument after `-c`. */
const shells: ReadonlySet<string> = new Set(["sh", "bash", "dash", "ash", "ksh", "zsh"]);
/**
 * Joins the pieces: `$1` is the number of texts, and each text is the number of its pieces and the pieces. The first
 * text is the script, the others are its arguments.
 */
const joinAndRun = `k=$1; shift
while [ "$k" -gt 0 ]; do
  n=$1; v=; shift
  while [ "$n" -gt 0 ]; do v=$v$1; shift; n=$((n-1)); done
  set -- "$@" "$v"; k=$((k-1))
done
v=$1; shift; unset k n; eval "$v"`;

/**
 * Makes a shell script and its arguments pass if one of them is longer than Linux allows for one
 * argument (128 KiB): sends it in pieces that the shell joins. Returns all other commands
 * unchanged. Arguments of other programs cannot be split.
 * **Source:** execve(2), "Limits on size of arguments and environment": `MAX_ARG_STRLEN`.
 */
export function fitArguments(command: readonly string[]): readonly string[] {
  const longAt = command.findIndex(isTooLong);
  if (longAt === -1) return command;
  const shellAt = command.findIndex((text) => shells.has(path.posix.basename(text)));
  const optionAt = command.findIndex(
    (text, index) => index > shellAt && /^-[A-Za-z]*c[A-Za-z]*$/.test(text),
  );
  const scriptAt = command.findIndex((text, index) => index > optionAt && !/^[-+]/.test(text));
  if (shellAt === -1 || optionAt === -1 || scriptAt === -1 || longAt < scriptAt) return command;
  const [script = "", name = command[shellAt] ?? "sh", ...rest] = command.slice(scriptAt);
  const texts = [script, ...rest];
  const pieces = texts
    .map((text) => cut(text))
    .flatMap((parts) => [String(parts.length), ...parts]);
  return [...command.slice(0, scriptAt), joinAndRun, name, String(texts.length), ...pieces];
}

function isTooLong(text: string): boolean {
  // No text has more bytes than three times its length.
  return text.length * 3 > longestBytes && Buffer.byteLength(text) > longestBytes;
}

/** Pieces of a text that end between characters. */
function cut(text: string): readonly string[] {
  const pieces: string[] = [];
  for (let start = 0; start < text.length;) {
    const end = start + pieceLength;
    const isWithinPair = /[\uD800-\uDBFF]/.test(text.charAt(end - 1));
    pieces.push(text.slice(start, isWithinPair ? end - 1 : end));
    start = isWithinPair ? end - 1 : end;
  }
  return pieces;
}
