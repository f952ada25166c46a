"""What a release is made of: bill of materials, licences of third parties, builds that are the same bytes twice."""
