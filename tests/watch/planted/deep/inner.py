from planted.deep import switch

switch.off(1)
