const whiteSpace = /^[\s▁]*$/u;

/**
 * Whether an added token of this content is white space, which is ordinary text and controls nothing. SentencePiece
 * spells a space as `▁`: tokenizers that were made from its files list runs of both.
 */
export function isWhiteSpaceToken(content: string): boolean {
  return whiteSpace.test(content);
}
