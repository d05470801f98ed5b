/** What a caller can send as `Authorization: Bearer …`: visible ASCII characters. */
export const bearerText = /^[\x21-\x7e]+$/;
