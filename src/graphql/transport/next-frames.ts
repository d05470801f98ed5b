/**
 * Encodes a result as a `next` message of graphql-transport-ws, in one unfragmented and unmasked
 * WebSocket frame (RFC 6455, section 5.2). Keeps the last frame, which most clients can share since
 * they use the same operation ids.
 */
export function nextFrames(json: string): (id: string) => Buffer {
  let last: { readonly id: string; readonly frame: Buffer } | undefined;
  return (id) => {
    if (last?.id !== id) {
      const text = `{"id":${JSON.stringify(id)},"type":"next","payload":${json}}`;
      last = { id, frame: textFrame(text) };
    }
    return last.frame;
  };
}

const wholeText = 0x81;

function textFrame(text: string): Buffer {
  const length = Buffer.byteLength(text);
  const headLength = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafeSlow(headLength + length);
  frame[0] = wholeText;
  if (headLength === 2) frame[1] = length;
  else if (headLength === 4) {
    frame[1] = 126;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = 127;
    frame.writeBigUInt64BE(BigInt(length), 2);
  }
  frame.write(text, headLength);
  return frame;
}
