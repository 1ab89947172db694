"""The vocabulary of the retail warehouse: canonical labels with the spellings that drift, and names."""

from __future__ import annotations

LABELS = {
    "segment": {"consumer": ("B2C", "Private", "retail customer"), "small_business": ("SMB", "Small Biz", "micro-enterprise"), "corporate": ("B2B", "Enterprise", "key account")},
    "category": {
        "kitchen": ("Kitchenware", "KTCH", "cook & dine"), "garden": ("Gardening", "GRDN", "outdoor living"), "office": ("Stationery", "OFFC", "desk supplies"),
        "sports": ("Sporting Goods", "SPRT", "active wear"), "lighting": ("Lamps", "LGHT", "light fixtures"),
    },
    "channel": {"store": ("POS", "in-store", "Shop"), "web": ("ONLINE", "e-commerce", "www"), "phone": ("TEL", "call-centre", "Hotline")},
}  # fmt: skip
HEADINGS = {
    "transaction_id": ("txn", "receipt_no"), "sold_on": ("sale_date", "booked"), "customer_id": ("client", "cust_ref"), "product_id": ("sku", "article"),
    "store_id": ("outlet", "branch"), "channel": ("sales_channel", "route"), "quantity": ("qty", "pieces"), "unit_price": ("price", "price_each"),
    "discount_percent": ("disc", "rebate_pct"),
}  # fmt: skip
FIRST = "Ada Bela Cyrus Dora Emil Frida Goran Hedda Ivo Jana Kofi Lina Miro Nadia Otto Petra Quin Rosa Sami Tilda Ugo Vera Wim Xenia Yara Zeno".split()
LAST = "Abbas Berg Castro Dietz Eriksen Farkas Gruber Hahn Ibsen Jansen Keller Lund Moreau Novak Okoye Petit Quist Rossi Sato Toth Urban Vogel Weiss Yilmaz".split()
CITIES = "Alder Brook Cove Dale Elm Fern Glen Haven Inlet Juniper Knoll Lake".split()
ADJECTIVES = "amber brisk calm deep early fine grand hardy ivory jade keen light mellow noble".split()
NOUNS = {
    "kitchen": "kettle pan ladle bowl whisk".split(), "garden": "rake hose planter trowel bench".split(), "office": "stapler binder pen tray lamp-clip".split(),
    "sports": "racket ball mat bottle band".split(), "lighting": "lantern spot sconce bulb strip".split(),
}  # fmt: skip
