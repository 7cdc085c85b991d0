const whiteSpace = /^[\s▁]*$/u;

/**
 * True if an added token is white space, which is ordinary text and controls nothing. SentencePiece
 * writes a space as `▁`, and tokenizers that are converted from its files list runs of both.
 */
export function isWhiteSpaceToken(content: string): boolean {
  return whiteSpace.test(content);
}
